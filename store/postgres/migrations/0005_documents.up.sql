-- Small documents of operators and programs. Each write gives a row a new revision, which no other
-- had.
create table @.document (
  space    text   not null collate "C",
  key      text   not null collate "C",
  value    text   not null,              -- JSON
  label    text   not null,
  due      bigint not null,              -- 0 is never
  expires  bigint not null,              -- 0 is never
  revision bigint not null generated always as identity,
  owner    text   not null,              -- of the lease; '' is none
  until    bigint not null,
  at       bigint not null,
  by       text   not null,
  primary key (space, key)
) with (fillfactor = 70);

create index document_label   on @.document (space, label, key);
create index document_due     on @.document (space, due, key) where due > 0;
create index document_expires on @.document (expires) where expires > 0;

insert into @.document (space, key, value, label, due, expires, owner, until, at, by)
select 'watch', name, state, '', 0, 0, '', 0, 0, ''
from @.watcher
where name <> '';

drop table @.watcher;

alter table @.owner drop column breakers;
