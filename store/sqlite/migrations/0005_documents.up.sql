-- Small documents of operators and programs. Each write makes a new row, so a revision is never used
-- again.
create table document (
  revision integer primary key autoincrement,
  space    text    not null,
  key      text    not null,
  value    text    not null,              -- JSON
  label    text    not null,
  due      integer not null,              -- 0 is never
  expires  integer not null,              -- 0 is never
  owner    text    not null,              -- of the lease; '' is none
  until    integer not null,
  at       integer not null,
  by       text    not null,
  texts    integer,                       -- sum of the texts; null: an earlier build wrote them
  sums     integer generated always as (
    due % 8191 + expires % 8179 * 3 + until % 8171 * 5 + at % 8167 * 7 + revision % 8161 * 11
  ) virtual,
  sum      integer generated always as (sums) stored
) strict;

create unique index document_key     on document (space, key);
create index        document_label   on document (space, label, key);
create index        document_due     on document (space, due, key) where due > 0;
create index        document_expires on document (expires) where expires > 0;

insert into document (space, key, value, label, due, expires, owner, until, at, by)
select 'watch', name, state, '', 0, 0, '', 0, 0, ''
from watcher
where name <> '' and json_valid(state);

drop table watcher;

alter table owner drop column breakers;
