alter table owner add column breakers text not null default '';
create table watcher (
  name  text primary key,
  state text not null
) strict, without rowid;
insert into watcher (name, state) select key, value from document where space = 'watch';
drop table document;
