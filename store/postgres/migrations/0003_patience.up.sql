-- What policy counts of a message in its generation besides attempts, as JSON; null is nothing.
alter table @.pending add column patience text;

-- When a worker last asked the queue for messages, 0 is never. It is written now and then.
alter table @.queue add column asked bigint not null default 0;

-- True: the process was told to stop, so that what it leaves behind is no crash.
alter table @.owner add column stopping boolean not null default false;

-- How far watchers of new causes have come, as JSON.
create table @.watcher (
  name  text primary key,
  state text not null
);
