-- A message is one row of `message`, written once. A plain one (no stream, delay,
-- priority or dedupe key) is handed out by range: the cursor of its queue moves past
-- it, and one row of `batch` is the lease of all in between. When it succeeds a row
-- of `log` says so. One that is plain but for its strict stream is in a `lane`: the row
-- of its stream hands it out when it is the next, and is its lease. Any other message,
-- and one of these that failed, was given back or changed by hand, has a row of
-- `pending`, which claims, retries and releases change, until it ends and a row of
-- `log` comes. A redrive goes the way back. So what changes is small, and what is
-- large does not change.
--
-- `pos` is a message's own number, in the order messages came. `place` is where it
-- stands among those of its queue, and `rank` among those of its stream: later
-- ones for what was moved or appended. All three come from one sequence. Ranges go
-- by (tx, pos), as transactions do not end in the order in which they draw numbers.
--
-- Moments are nanoseconds since 1970 UTC, 0 is none. JSON texts are null when
-- there is nothing to say. `@.` stands for the schema.

create table @.meta (
  name  text primary key,
  value text not null
);

-- Whose transactions the ranges count by: a store that is moved has other ones.
insert into @.meta (name, value) select 'cluster', system_identifier::text from pg_control_system();

create sequence @.place;

create table @.queue (
  n        integer generated always as identity primary key,
  name     text    not null unique,
  settings jsonb   not null default '{}',
  paused   boolean not null default false, -- says again what settings say, for claims
  strict   boolean not null default false,
  age      bigint  not null,               -- nanoseconds that one priority is worth
  lease    bigint  not null                -- nanoseconds
);

create table @.message (
  pos      bigint   primary key default nextval('@.place'),
  tx       xid8     not null default pg_current_xact_id(),
  id       uuid     not null,
  queue    integer  not null,
  type     text     not null,
  key      text,
  stream   text,
  dedupe   text,
  priority smallint not null,
  body     bytea    not null,
  hash     bytea    not null,
  headers  text,
  origin   text,
  enqueued bigint   not null,
  expires  bigint   not null,
  apart    boolean  not null default false,  -- ranges pass it by
  lane     bigint                            -- the stream that hands it out, if it goes by that
);

alter table @.message alter body set storage external;
create unique index message_id     on @.message (id);
create index        message_range  on @.message (queue, tx, pos) where not apart;
create index        message_lane   on @.message (lane, pos) where lane is not null;
create index        message_key    on @.message (key) where key is not null;
create index        message_origin on @.message using hash (origin) where origin is not null;

-- Up to where the ranges of a queue were handed out: a place in the order (tx, pos),
-- and the transactions that had not ended when the cursor passed them, each with
-- the last of its messages that was handed out since. Its row is the lock of whoever
-- hands out ranges, or changes a message that no range has reached.
create table @.cursor (
  queue integer  primary key,
  tx    xid8     not null default '0',
  pos   bigint   not null default 0,
  late  xid8[]   not null default '{}',
  done  bigint[] not null default '{}'
) with (fillfactor = 20);

-- A lease of plain messages: the next members after a place up to last. Others cannot
-- come between them, as the transactions there had all ended. Whoever changes one of them that
-- has neither ended nor is apart holds the lock of the row.
create table @.batch (
  n        bigint   primary key,            -- never used twice, also if the server forgets the claim
  queue    integer  not null,
  owner    integer  not null,
  after_tx xid8     not null,
  after    bigint   not null,
  last_tx  xid8     not null,
  last     bigint   not null,
  members  integer  not null,
  remains  integer  not null,               -- members that the lease is still about
  claimed  bigint   not null,
  until    bigint   not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

create index batch_range on @.batch (queue, after_tx, after);
create index batch_lease on @.batch (until);

create table @.pending (
  pos        bigint   primary key,
  queue      integer  not null,
  state      smallint not null,             -- 0 queued, 1 leased, 6 queued behind others of its stream
  priority   smallint not null,
  due        bigint   not null,             -- not handed out earlier
  place      bigint   not null,
  attempts   bigint   not null,
  deliveries bigint   not null,
  crashes    bigint   not null,
  generation bigint   not null,
  redrives   bigint   not null,
  number     bigint   not null,             -- of the newest lease, grows over all lives
  owner      integer  not null,             -- of the lease, 0 when queued
  until      bigint   not null,             -- end of the lease, 0 when queued
  received   bigint   not null,             -- first claim of all lives
  claimed    bigint   not null,             -- newest claim
  abandoned  text,                          -- the holder that vanished; to be judged
  steps      text,
  stream     bigint,                        -- of an ordered queue
  rank       bigint   not null,
  may_pass   boolean  not null,             -- may go before those of its stream that wait or are dead
  gap        boolean  not null,             -- was handed out out of order
  reason     text                           -- of its newest failure
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- What waits behind others of its stream is not in pending_next, so that a blocked
-- stream costs those who claim nothing. pending_lease asks for until and not for the
-- state, so that no plan takes it for the one that finds the leased of a stream.
create index pending_due     on @.pending (queue, priority, due, place) where state = 0 and crashes = 0 and stream is null;
create index pending_next    on @.pending (queue, priority, due, place) where state = 0 and crashes = 0 and stream is not null;
create index pending_suspect on @.pending (queue, due)       where state = 0 and crashes > 0;
create index pending_lease   on @.pending (until)            where until > 0;
create index pending_stream  on @.pending (stream, rank)     where stream is not null;
create index pending_order   on @.pending (stream, due, rank) where stream is not null;
create index pending_out     on @.pending (stream)           where stream is not null and state = 1;
create index pending_ready   on @.pending (stream)           where stream is not null and state = 0;
create index pending_passing on @.pending (stream, due, rank) where may_pass;

-- The streams of ordered queues that have messages on their way or unresolved
-- letters. Whoever changes what is in a stream holds the lock of its row.
--
-- A strict stream has a lane: those of its messages that have no row of their own and
-- that it has not reached. It hands them out while there is nothing else in it; when
-- there is, the stream is mixed, and the next of the lane gets a row when its turn
-- comes.
create table @.stream (
  n       bigint  generated always as identity primary key,
  queue   integer not null,
  name    text    not null,
  top     bigint  not null default 0,       -- highest rank that was handed out
  blocked boolean not null default false,   -- a dead message holds it up
  due     bigint  not null default 0,       -- when its next message may go, 0 is at once
  mixed   boolean not null default false,   -- it has rows of pending or letters, or was overtaken
  ready   bigint  not null default 0,       -- the message of the lane that may be handed out, else 0
  at      bigint  not null default 0,       -- up to where the lane was handed out
  owner   integer not null default 0,       -- of the lease of the message at that place, else 0
  until   bigint  not null default 0,
  claimed bigint  not null default 0,
  unique (name, queue)                      -- in this order: a name says more than a queue
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

create index stream_ready on @.stream (queue, due, ready) where ready > 0;
create index stream_lease on @.stream (until)             where until > 0;

create table @.log (
  pos        bigint   primary key,
  queue      integer  not null,
  state      smallint not null,             -- 2 succeeded, 3 discarded, 4 canceled, 5 dead
  ended      bigint   not null,
  received   bigint   not null,
  attempts   bigint,                        -- null from here on: a clean first life (1, 1, 0, 1, 0, 1)
  deliveries bigint,
  crashes    bigint,
  generation bigint,
  redrives   bigint,
  number     bigint,
  steps      text,
  gap        boolean,
  reason     text,
  note       text                           -- why it was discarded or canceled
);

-- For retention. Rows end about in the order in which they lie.
create index log_ended on @.log using brin (ended) with (autosummarize = on);

create table @.failure (
  pos      bigint  not null,
  ordinal  bigint  not null,                -- 1, 2, 3 … of the message, never reused
  queue    integer not null,
  at       bigint  not null,                -- when it was recorded
  failed   bigint  not null,                -- when it happened, by whoever tells it
  class    text    not null,
  reason   text    not null,
  decision text    not null,
  text     text    not null,
  low      text,                            -- text in small letters, where PostgreSQL may not know them
  doc      text    not null,                -- the rest of the failure as JSON
  primary key (pos, ordinal)
);

create index failure_retry on @.failure (queue, at) where decision = 'retry';

create table @.attachment (
  pos       bigint  not null,
  failure   bigint  not null,               -- failure.ordinal
  ordinal   integer not null,
  name      text    not null,
  data      bytea   not null,
  truncated bigint  not null,
  primary key (pos, failure, ordinal)
);

create table @.letter (
  n            bigint  generated always as identity primary key,
  id           uuid    not null unique,
  pos          bigint  not null unique,
  queue        integer not null,
  status       text    not null,
  cause        text    not null,
  class        text    not null,
  reason       text    not null,
  signature    text    not null,
  fingerprint  text    not null,
  redrivable   boolean not null,
  needs_review boolean not null,
  rule         text    not null,
  text         text    not null,            -- of the last failure, for searching
  text_low     text,                        -- in small letters, where PostgreSQL may not know them
  label_low    text,                        -- likewise the signature
  first_failed bigint  not null,
  last_failed  bigint  not null,
  died         bigint  not null,
  resolved     bigint  not null,
  operation    uuid,
  note         text    not null,
  revision     bigint  not null,
  stream       bigint,                      -- while its message is dead in an ordered stream
  rank         bigint  not null,
  blocks       boolean not null             -- the followers wait
);

create index letter_died      on @.letter (died, n);
create index letter_group     on @.letter (fingerprint, died);
create index letter_queue     on @.letter (queue, died, n);
create index letter_resolved  on @.letter (queue, resolved, n) where resolved > 0;
create index letter_operation on @.letter (operation) where operation is not null;
create index letter_stream    on @.letter (stream, rank) where stream is not null;

create table @.note (
  letter  bigint  not null,                 -- letter.n
  ordinal integer not null,
  at      bigint  not null,
  by      text    not null,
  text    text    not null,
  primary key (letter, ordinal)
);

create table @.dedupe (
  queue integer not null,
  key   text    not null,
  pos   bigint  not null,                   -- the holder
  primary key (queue, key)
);

create index dedupe_holder on @.dedupe (pos);

create table @.inbox (
  scope text   not null,
  key   text   not null,
  at    bigint not null,
  primary key (scope, key)
);

create index inbox_at on @.inbox (at);

-- Processes that claim. One whose heart was not seen for a while is dead: its
-- leases are void.
create table @.owner (
  n       integer     generated always as identity primary key,
  name    text        not null,
  started timestamptz not null default clock_timestamp(),
  seen    timestamptz not null default clock_timestamp(),
  gone    boolean     not null default false  -- it left, or was taken for dead, and held leases
);

create table @.operation (
  n       bigint  generated always as identity primary key,
  id      uuid    not null unique,
  event   text    not null,
  actor   text    not null,
  reason  text    not null,
  filter  text    not null,
  force   boolean not null,
  created bigint  not null
);

create table @.item (
  operation bigint not null,
  ordinal   bigint not null,
  letter    bigint not null,                -- letter.n, which it may outlive
  state     text   not null,                -- pending, done, skipped, failed
  primary key (operation, ordinal),
  unique (operation, letter)
);

create index item_waits on @.item (letter) where state = 'pending';

create table @.audit (
  queue   integer not null,
  number  bigint  not null,
  at      bigint  not null,
  actor   text    not null,
  event   text    not null,
  subject uuid,
  reason  text    not null,
  hash    bytea   not null,
  primary key (queue, number)
);

create index audit_at      on @.audit (at);
create index audit_subject on @.audit (subject) where subject is not null;

-- The ends of each chain: its newest entry, and the newest that was pruned. Its
-- row is the lock under which a chain grows, held from the end of a transaction's
-- work to its commit.
create table @.chain (
  queue       integer primary key,
  number      bigint not null default 0,
  hash        bytea  not null default '',
  gone_number bigint not null default 0,
  gone_hash   bytea  not null default ''
);

-- How many rows of log there are, as the sum of what each transaction changed: rows
-- are only added, so that nobody waits for anybody, and now and then many become one.
create table @.counter (
  queue  integer  not null,
  state  smallint not null,
  reason text     not null,                  -- of those that were discarded; else empty
  n      bigint   not null
);

-- Counts that outlive their rows.
create table @.tally (
  queue integer not null,
  what  text    not null,                   -- pruned, purged: by the state of the message; discarded: by reason
  name  text    not null,
  n     bigint  not null,
  primary key (queue, what, name)
);

-- The plain messages that no range has reached yet.
create view @.fresh as
select m.queue, m.pos, m.tx, m.enqueued from @.cursor c join @.message m on m.queue = c.queue and not m.apart and (m.tx, m.pos) > (c.tx, c.pos)
union all
select m.queue, m.pos, m.tx, m.enqueued from @.cursor c cross join lateral unnest(c.late, c.done) l (tx, done)
join @.message m on m.queue = c.queue and not m.apart and m.tx = l.tx and m.pos > l.done;

-- The plain messages that leases of batches are about.
create view @.member as
select b.n as batch, b.queue, b.owner, b.claimed, b.until, m.pos, m.id, m.tx, m.enqueued
from @.batch b cross join lateral (
  select m.pos, m.id, m.tx, m.enqueued from @.message m where m.queue = b.queue and not m.apart and (m.tx, m.pos) > (b.after_tx, b.after) order by m.tx, m.pos limit b.members) m
where (m.tx, m.pos) <= (b.last_tx, b.last)
  and not exists (select from @.log l where l.pos = m.pos) and not exists (select from @.pending p where p.pos = m.pos);

-- The messages of lanes that have not been handed out.
create view @.follower as
select m.queue, s.n as stream, m.pos, m.enqueued, m.pos = s.ready as ready
from @.stream s cross join lateral (select * from @.message m where m.lane = s.n and m.pos > s.at order by m.pos) m;

-- What is known of a message now, whichever way it is kept: 1 in pending, 2 in log,
-- 3 in a batch, 4 before all ranges, 5 in a lane, 6 handed out of one, null if it is
-- lost.
create view @.current as
select m.pos, m.queue, q.name as queue_name, m.id, m.type, m.key, m.stream, m.dedupe, m.priority, m.hash, m.headers, m.origin, m.enqueued, m.expires,
       case when p.pos is not null then 1 when l.pos is not null then 2 when b.n is not null then 3 when not m.apart then 4 when m.pos > s.at then 5 when m.pos = s.at then 6 end as lies,
       b.n as batch,
       case when p.pos is not null then case p.state when 6 then 0 else p.state end when l.pos is not null then l.state when b.n is not null then 1 when not m.apart or m.pos > s.at then 0 when m.pos = s.at then 1 end as state,
       case when p.pos is not null then p.state when m.pos > s.at then 6 end as stands,
       case when p.pos is not null then p.due when l.pos is null and b.n is null and m.pos is distinct from s.at then m.enqueued else 0 end as due,
       coalesce(p.place, m.pos) as place,
       coalesce(p.attempts, l.attempts, case when l.pos is not null or b.n is not null or m.pos = s.at then 1 else 0 end) as attempts,
       coalesce(p.deliveries, l.deliveries, case when l.pos is not null or b.n is not null or m.pos = s.at then 1 else 0 end) as deliveries,
       coalesce(p.crashes, l.crashes, 0) as crashes,
       coalesce(p.generation, l.generation, 1) as generation,
       coalesce(p.redrives, l.redrives, 0) as redrives,
       coalesce(p.number, l.number, case when l.pos is not null or b.n is not null or m.pos = s.at then 1 else 0 end) as number,
       coalesce(p.owner, b.owner, case m.pos when s.at then s.owner end, 0) as owner, coalesce(p.until, b.until, case m.pos when s.at then s.until end, 0) as until, coalesce(p.claimed, b.claimed, case m.pos when s.at then s.claimed end, 0) as claimed,
       coalesce(p.received, l.received, b.claimed, case m.pos when s.at then s.claimed end, 0) as received,
       p.abandoned, coalesce(p.steps, l.steps) as steps, coalesce(p.stream, s.n) as in_stream, coalesce(p.rank, case when s.n is not null then m.pos else 0 end) as rank,
       coalesce(l.ended, 0) as ended, coalesce(p.may_pass, false) as may_pass, coalesce(p.gap, l.gap, false) as gap,
       coalesce(p.reason, l.reason, '') as reason
from @.message m
join @.queue q on q.n = m.queue
left join lateral (select * from @.pending p where p.pos = m.pos limit 1) p on true -- by the index, however few there were when a plan was made
left join lateral (select * from @.log l where l.pos = m.pos limit 1) l on true
left join lateral (
  select b.* from (select b.* from @.batch b where p.pos is null and l.pos is null and not m.apart
    and b.queue = m.queue and (b.after_tx, b.after) < (m.tx, m.pos) order by b.after_tx desc, b.after desc limit 1) b
  where (b.last_tx, b.last) >= (m.tx, m.pos)) b on true
left join lateral (select s.* from @.stream s where p.pos is null and l.pos is null and s.n = m.lane and (m.pos > s.at or m.pos = s.at and s.until > 0) limit 1) s on true;

-- The same for people who know the tables of a transactional outbox. The status is
-- a sum: 1 stored, 2 event stored, 4 published, 32768 failed.
create view @.nixie_outbox as
select c.id as message_id, c.queue_name as destination, c.type as event_type, m.body as event_data, c.stream as stream_id,
       1 + case when (c.steps::jsonb) ? 'EventStored' or c.state = 2 then 2 else 0 end
         + case when (c.steps::jsonb) ? 'Published' or c.state = 2 then 4 else 0 end
         + case when c.reason <> '' and c.state in (0, 1, 5) then 32768 else 0 end as status,
       c.attempts,
       (select f.text from @.failure f where f.pos = c.pos order by f.ordinal desc limit 1) as error,
       case c.reason when 'transport-unavailable' then 1 when 'handler' then 2 when 'validation' then 3 when 'timeout' then 4
         when 'serialization' then 5 when 'dependency' then 6 when 'poison' then 7 else 99 end as failure_reason,
       case when c.state = 0 and c.due > c.enqueued then to_timestamp(c.due / 1e9) end as scheduled_for,
       (select o.name from @.owner o where o.n = c.owner) as instance_id,
       case when c.until > 0 then to_timestamp(c.until / 1e9) end as lease_expiry,
       to_timestamp(c.enqueued / 1e9) as created_at,
       case when c.state = 2 then to_timestamp(c.ended / 1e9) end as published_at
from @.current c join @.message m on m.pos = c.pos;

-- And for those who know a log of jobs: one row for each that ended, and for each
-- letter that was purged.
create view @.nixie_job_log as
select m.id as job_id, q.name as entrypoint,
       case l.state when 2 then 'successful' when 3 then 'deleted' when 4 then 'canceled' else 'exception' end as status,
       f.doc::json->>'type' as exception_type, f.text as exception_message, f.doc::json->>'stack' as traceback,
       to_timestamp(l.ended / 1e9) as created
from @.log l join @.message m on m.pos = l.pos join @.queue q on q.n = l.queue
left join lateral (select * from @.failure f where f.pos = l.pos and l.state = 5 order by f.ordinal desc limit 1) f on true
union all
select a.subject, q.name, 'deleted', null, null, null, to_timestamp(a.at / 1e9)
from @.audit a join @.queue q on q.n = a.queue where a.event = 'purge' and a.subject is not null;

-- And their jobs that have not ended; a heart beats for all jobs of a process.
create view @.nixie_jobs as
select m.id, q.name as entrypoint, case w.owner when 0 then 'queued' else 'picked' end as status,
       o.seen as heartbeat, to_timestamp(greatest(w.claimed, m.enqueued) / 1e9) as updated
from (select pos, owner, claimed from @.pending union all select pos, owner, claimed from @.member union all select pos, 0, 0 from @.fresh
  union all select at, owner, claimed from @.stream where until > 0 union all select pos, 0, 0 from @.follower) w
join @.message m on m.pos = w.pos join @.queue q on q.n = m.queue left join @.owner o on o.n = w.owner;
