-- Where a message lies. `message` has one row for each message, written once. What becomes of it
-- lies in another table, or is not written at all:
--
--   message                                     lies in        a claim takes it by
--   ------------------------------------------  -------------  ---------------------------------
--   plain: no stream, delay, priority, dedupe   nothing        range: the cursor of its queue
--   key                                                        moves past it
--   in a strict stream, otherwise plain         nothing        ordered path: it gets a `token`
--                                                              when its predecessor succeeds
--   claimed by either                           `batch`, one   –
--                                               row for many
--   anything else: it failed once, was given    `pending`      row
--   back or changed, or was never plain
--   succeeded next to others of its batch       `success_      –
--                                               range`, one
--                                               row for many
--   ended otherwise                             `log`          a redrive makes a row of pending
--
-- So what changes is small, and what is large does not change.
--
-- Three numbers come from one sequence. `pos` names a message, in the order in which messages came.
-- `queue_pos` is its position in its queue and `rank` its position in its stream: both are later
-- numbers for messages that were moved or appended. Ranges follow (tx, pos), because transactions do
-- not end in the order in which they draw numbers.
--
-- Moments are nanoseconds since 1970 UTC, 0 means none. JSON texts are null when they are empty.
-- `@.` stands for the schema.

create table @.meta (
  name  text primary key,
  value text not null
);

-- The server whose transaction IDs the ranges count in: a store that is moved gets another one.
insert into @.meta (name, value) select 'cluster', system_identifier::text from pg_control_system();

-- Each value stands for the 32 numbers from it on: a call takes many at once.
create sequence @.position increment by 32;

-- The position that the ID of a message says in its last 48 bits.
create function @.pos_of(id uuid) returns bigint language sql immutable strict parallel safe
as $$ select ('x' || pg_catalog.right(id::text, 12))::bit(48)::bigint $$;

create table @.queue (
  n        integer generated always as identity primary key,
  name     text    not null unique,
  settings jsonb   not null default '{}',
  paused   boolean not null default false, -- a copy from settings, for claims
  strict   boolean not null default false,
  age      bigint  not null,               -- nanoseconds that one priority is worth
  lease    bigint  not null                -- nanoseconds
);

create table @.message (
  pos            bigint   primary key default nextval('@.position'),
  tx             xid8     not null default pg_current_xact_id(),
  id             uuid     not null,
  queue          integer  not null,
  type           text     not null,
  key            text,
  stream         text,
  dedupe         text,
  priority       smallint not null default 0,
  body           bytea    not null,
  hash           bytea    not null,
  headers        text,
  origin         text,
  enqueued       bigint   not null,
  expires        bigint   not null default 0,
  by_range       boolean  not null default true,  -- claims by range take it
  numbered       boolean  not null default false, -- its ID says its pos
  ordered_stream bigint                           -- the stream on whose ordered path it is
);

alter table @.message alter body set storage external;
create unique index message_id     on @.message (id) where not numbered;
create index        message_range  on @.message (queue, tx, pos) where by_range;
create index        message_ordered on @.message (ordered_stream, pos) where ordered_stream is not null;
create index        message_key    on @.message (key) where key is not null;
create index        message_origin on @.message using hash (origin) where origin is not null;

-- How far claims have come in a queue: a position in the order (tx, pos), and the transactions that
-- had not ended when the cursor passed them, each with its last message that was claimed since. In a
-- strict queue claims have read the tokens of all transactions before tx but the late ones.
--
-- Its row is the lock of claims by range and by the ordered path, and of calls that change a message
-- that no claim has reached. Each move counts: a claim finds the highest number first, without
-- stepping over versions of the row that an open transaction keeps from being removed.
create table @.cursor (
  queue integer  not null,
  moves bigint   not null default 0,
  tx    xid8     not null default '0',
  pos   bigint   not null default 0,
  late  xid8[]   not null default '{}',
  done  bigint[] not null default '{}',
  low   bigint   not null default 0, -- no row of ready is due before
  primary key (queue, moves)
);

-- A lease of many messages. One by range is about the next members after (after_tx, after), up to
-- last: others cannot come between them, because all transactions there had ended. One by the ordered
-- path lists them: positions, from after to last, and their streams. A call that changes a member
-- without a row holds the lock of the batch.
create table @.batch (
  n         bigint    primary key,        -- never used twice, even if the server forgets the claim
  queue     integer   not null,
  owner     integer   not null,
  after_tx  xid8      not null default '0',
  after     bigint    not null,
  last_tx   xid8      not null default '0',
  last      bigint    not null,
  members   integer   not null,
  remains   integer   not null,           -- members that the lease is still about
  in_ranges integer   not null default 0, -- members in success ranges; others that it is not about have rows
  claimed   bigint    not null,
  until     bigint    not null,
  streams   bigint[],
  positions bigint[]
) with (
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);

alter table @.batch alter streams set storage external, alter positions set storage external;
create index batch_range on @.batch (queue, after_tx, after);
create index batch_lease on @.batch (until);

-- Plain messages that succeeded in their first generation, next to each other in one batch: as there,
-- the next members after a position up to last. None of them has a row of its own, now or later. The
-- range of a message is the nearest one that begins before it, if that reaches it.
create table @.success_range (
  queue    integer not null,
  after_tx xid8    not null,
  after    bigint  not null,
  last_tx  xid8    not null,
  last     bigint  not null,
  members  integer not null,
  ended    bigint  not null,
  received bigint  not null,
  primary key (queue, after_tx, after)
);

create index success_range_ended on @.success_range (queue, ended);

create table @.pending (
  pos        bigint   primary key,
  queue      integer  not null,
  state      smallint not null,               -- 0 queued, 1 leased, 6 queued behind others of its stream
  priority   smallint not null,
  due        bigint   not null,               -- not claimed earlier
  queue_pos  bigint   not null,               -- its position in its queue
  attempts   bigint   not null,
  deliveries bigint   not null,
  crashes    bigint   not null,               -- in a row
  alone      boolean  not null default false, -- it ran alone the last two times
  generation bigint   not null,
  redrives   bigint   not null,
  number     bigint   not null,               -- of the newest lease, grows over all generations
  owner      integer  not null,               -- of the lease, 0 when queued
  until      bigint   not null,               -- end of the lease, 0 when queued
  received   bigint   not null,               -- first claim of all generations
  redriven   bigint   not null default 0,     -- begin of this generation, 0 in the first
  claimed    bigint   not null,               -- newest claim
  abandoned  text,                            -- the holder that vanished; to be judged
  steps      text,
  stream     bigint,                          -- of an ordered queue
  rank       bigint   not null,
  may_pass   boolean  not null,               -- may pass those of its stream that wait or are dead
  gap        boolean  not null,               -- was claimed out of order
  reason     text                             -- of its newest failure
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- Messages that wait behind others of their stream are not in pending_next: a blocked stream costs
-- claims nothing. pending_lease asks for until and not for the state, so that no plan takes it for
-- the index that finds the leased message of a stream.
create index pending_due     on @.pending (queue, priority, due, queue_pos) where state = 0 and crashes = 0 and stream is null;
create index pending_next    on @.pending (queue, priority, due, queue_pos) where state = 0 and crashes = 0 and stream is not null;
create index pending_suspect on @.pending (queue, due)       where state = 0 and crashes > 0;
create index pending_lease   on @.pending (until)            where until > 0;
create index pending_stream  on @.pending (stream, rank)     where stream is not null;
create index pending_order   on @.pending (stream, due, rank) where stream is not null;
create index pending_out     on @.pending (stream)           where stream is not null and state = 1;
create index pending_ready   on @.pending (stream)           where stream is not null and state = 0;
create index pending_passing on @.pending (stream, due, rank) where may_pass;

-- How far holders are with what they have leased: a message waits, or has succeeded. The table is not
-- in the write-ahead log, so a crash of the server empties it.
create unlogged table @.progress (
  pos       bigint  not null,
  number    bigint  not null, -- of the lease
  batch     bigint  not null, -- that the lease was part of at first, or 0
  owner     integer not null,
  succeeded boolean not null,
  primary key (pos, number)
) with (
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);

create index progress_batch on @.progress (batch) where batch > 0;

-- The streams of ordered queues that have messages on their way or unresolved letters, and some that
-- had. A call that changes what is in a stream holds the lock of its row.
--
-- Messages on the ordered path of a strict stream have no row. While nothing else is in the stream,
-- its first message that has not ended has a token, and when it succeeds the next message gets one;
-- the row of the stream is locked for that, but not written. A stream with rows or letters is mixed:
-- then the next message of the ordered path gets a row when its predecessor has ended.
create table @.stream (
  n         bigint  generated always as identity primary key,
  queue     integer not null,
  name      text    not null,
  top       bigint  not null default 0,     -- highest rank that was claimed, when its head was recomputed
  blocked   boolean not null default false, -- a dead message holds it up
  due       bigint  not null default 0,     -- when its next message may go, if it is mixed, 0 is at once
  mixed     boolean not null default false, -- it has rows of pending or letters, or was overtaken
  at        bigint  not null default 0,     -- the ordered path up to here has ended or has rows, and perhaps more
  has_token boolean not null default true,  -- the first of the ordered path, if there is one, has a token or is claimed
  unique (name, queue)                      -- in this order: a name says more than a queue
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- The streams to which transactions of callers are adding: a second one waits for the first. Rows go
-- in the call in which they came.
create unlogged table @.adding (
  stream bigint primary key
);

-- The tokens that one transaction gave, until a claim reads them: stream and position of messages that
-- may be claimed. Claims find tokens as ranges find messages: rows are only added, and claims read on
-- behind what they have read. A token is void if its message has left the ordered path.
--
-- A position below zero makes a token unresolved: the transaction could not see whether others were
-- appending to the stream. It stands for the first message of the ordered path from there on, if all
-- before it have ended.
create table @.token (
  queue     integer  not null,
  tx        xid8     not null default pg_current_xact_id(),
  streams   bigint[] not null,
  positions bigint[] not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

alter table @.token alter streams set storage external, alter positions set storage external;
create index token_range on @.token (queue, tx);

-- Tokens that a claim read and had no room for.
create table @.ready (
  queue  integer not null,
  due    bigint  not null,
  pos    bigint  not null,
  stream bigint  not null,
  primary key (queue, due, pos)
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

create table @.log (
  pos        bigint   primary key,
  queue      integer  not null,
  state      smallint not null, -- 2 succeeded, 3 discarded, 4 canceled, 5 dead
  ended      bigint   not null,
  received   bigint   not null,
  attempts   bigint,            -- null here and below stands for a clean first generation: 1, 1, 0, 1, 0, 1, false
  deliveries bigint,
  crashes    bigint,
  generation bigint,
  redrives   bigint,
  redriven   bigint,            -- begin of this generation, null in the first
  number     bigint,
  steps      text,
  gap        boolean,
  reason     text,
  queue_pos  bigint,            -- of one that was moved from another queue
  note       text               -- why it was discarded or canceled
);

-- For retention, which leaves out the dead. Rows end about in the order in which they lie.
create index log_ended on @.log using brin (ended) with (autosummarize = on) where state <> 5;
create index log_ceased on @.log (pos) where state in (3, 4);

-- The failures of messages, but for the one by which a message died first: that is in its letter until
-- the message fails again.
create table @.failure (
  pos      bigint  not null,
  ordinal  bigint  not null, -- 1, 2, 3 … of the message, never reused
  queue    integer not null,
  at       bigint  not null, -- when it was recorded
  failed   bigint  not null, -- when it happened, as its worker says
  class    text    not null,
  reason   text    not null,
  decision text    not null,
  text     text    not null,
  low      text,             -- text in small letters, where PostgreSQL may not know them
  doc      text    not null, -- the rest of the failure as JSON, without what says nothing
  primary key (pos, ordinal)
);

-- For the retries of the last hour. Rows come about in the order in which they lie.
create index failure_at on @.failure using brin (at) with (autosummarize = on);

create table @.attachment (
  pos       bigint  not null,
  failure   bigint  not null, -- failure.ordinal
  ordinal   integer not null,
  name      text    not null,
  data      bytea   not null,
  truncated bigint  not null,
  primary key (pos, failure, ordinal)
);

-- The facet of a letter: a number for everything that letters are counted by.
create function @.facet_of(
  queue integer, type text, status text, cause text, class text, reason text, signature text, fingerprint text,
  redrivable boolean, needs_review boolean, redrives integer, attempts integer, crashes integer
) returns bigint language sql immutable parallel safe as $$
  select hashtextextended(type, hashtextextended(status, hashtextextended(cause, hashtextextended(class,
    hashtextextended(reason, hashtextextended(signature, hashtextextended(fingerprint, hashint4extended(queue,
    hashint4extended(redrives, hashint4extended(attempts, hashint4extended(crashes,
    redrivable::integer + 2 * needs_review::integer)))))))))))
$$;

create table @.letter (
  pos          bigint  primary key,            -- of its message
  id           uuid    not null,
  numbered     boolean not null default false, -- its ID says its pos
  queue        integer not null,
  type         text    not null,               -- of its message
  status       text    not null,
  cause        text    not null,
  class        text    not null,
  reason       text    not null,
  signature    text    not null,
  fingerprint  text    not null,
  redrivable   boolean not null,
  needs_review boolean not null,
  redrives     integer not null,               -- of its message
  attempts     integer not null,               -- of its message, as crashes; 0 while that is on its way
  crashes      integer not null,
  facet        bigint  generated always as (@.facet_of(
    queue, type, status, cause, class, reason, signature, fingerprint, redrivable, needs_review, redrives, attempts, crashes
  )) stored,
  hour         bigint  generated always as ( -- of its death, since 1970
    (died - (died % 3600000000000 + 3600000000000) % 3600000000000) / 3600000000000
  ) stored,
  rule         text    not null,
  text         text    not null,               -- of the last failure, for searching
  text_low     text,                           -- in small letters, where PostgreSQL may not know them
  label_low    text,                           -- likewise the signature
  first_failed bigint  not null,
  last_failed  bigint  not null,
  died         bigint  not null,
  resolved     bigint  not null,
  operation    uuid,
  note         text    not null,
  revision     bigint  not null,
  stream       bigint,                         -- while its message is dead in an ordered stream
  rank         bigint  not null,
  blocks       boolean not null,               -- the followers wait
  ordinal      bigint,                         -- of its own failure, and at, decision and doc of that
  at           bigint,
  decision     text,
  doc          text
);

create unique index letter_id on @.letter (id) where not numbered;
create index letter_queue     on @.letter (queue, died, pos);
create index letter_facet      on @.letter (facet, died, pos);
create index letter_resolved  on @.letter (queue, resolved, pos) where resolved > 0;
create index letter_operation on @.letter (operation, status) where operation is not null;
create index letter_stream    on @.letter (stream, rank) where stream is not null;

-- How many letters of a facet died in which hour, as a sum of changes. Statements only add rows, so that
-- no transaction waits for another; now and then they are added to the kept rows of their facet: that of
-- their hour, and that of all hours. Who asks for all hours reads the rows with whole, who asks for some
-- hours reads those with an hour. Changes are both.
create table @.death (
  queue        integer not null,
  type         text    not null,
  status       text    not null,
  cause        text    not null,
  class        text    not null,
  reason       text    not null,
  signature    text    not null,
  label_low    text,
  fingerprint  text    not null,
  redrivable   boolean not null,
  needs_review boolean not null,
  redrives     integer not null,
  attempts     integer not null,
  crashes      integer not null,
  facet        bigint  generated always as (@.facet_of(
    queue, type, status, cause, class, reason, signature, fingerprint, redrivable, needs_review, redrives, attempts, crashes
  )) stored,
  hour         bigint, -- null: of all hours
  letters      bigint  not null,
  kept         boolean not null default false,
  whole        boolean not null default true
);

create unique index death_kept  on @.death (facet, hour) where kept and hour is not null;
create unique index death_sum   on @.death (facet)       where kept and hour is null;
create index        death_whole on @.death (kept, fingerprint) where whole;
create index        death_hour  on @.death (hour, queue) include (letters) where kept and hour is not null;

create function @.count_letters() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    insert into @.death (
      queue, type, status, cause, class, reason, signature, label_low, fingerprint, redrivable, needs_review,
      redrives, attempts, crashes, hour, letters
    )
    select
      l.queue, l.type, l.status, l.cause, l.class, l.reason, l.signature, l.label_low, l.fingerprint, l.redrivable,
      l.needs_review, l.redrives, l.attempts, l.crashes, l.hour, -n
    from (select min(pos) as pos, count(*) as n from gone group by facet, hour) k
    join gone l on l.pos = k.pos;
  else
    insert into @.death (
      queue, type, status, cause, class, reason, signature, label_low, fingerprint, redrivable, needs_review,
      redrives, attempts, crashes, hour, letters
    )
    select
      queue, type, status, cause, class, reason, signature, label_low, fingerprint, redrivable, needs_review,
      redrives, attempts, crashes, hour, sum(n)
    from (select *, 1 as n from come union all select *, -1 from gone) changed
    group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    having sum(n) <> 0;
  end if;
  return null;
end $$;
create trigger count_out after delete on @.letter
  referencing old table as gone
  for each statement execute function @.count_letters();
create trigger count_again after update on @.letter
  referencing old table as gone new table as come
  for each statement execute function @.count_letters();

create table @.note (
  letter  bigint  not null, -- letter.pos
  ordinal integer not null,
  at      bigint  not null,
  by      text    not null,
  text    text    not null,
  primary key (letter, ordinal)
);

-- What the message of a letter said before an operator edited it first.
create table @.original (
  pos     bigint primary key,
  body    bytea  not null,
  hash    bytea  not null,
  headers text,
  at      bigint not null, -- of the first edit
  by      text   not null
);

alter table @.original alter body set storage external;

create table @.dedupe (
  queue integer not null,
  key   text    not null,
  pos   bigint  not null, -- the holder
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

-- Processes that claim. One without a heartbeat for a while is dead: its leases are void.
create table @.owner (
  n       integer     generated always as identity primary key,
  name    text        not null,
  started timestamptz not null default clock_timestamp(),
  seen    timestamptz not null default clock_timestamp(),
  gone    boolean     not null default false, -- it left, or was taken for dead, and held leases
  breakers text       not null default '' -- circuit breakers of its workers that are not closed
);

create table @.operation (
  n           bigint  generated always as identity primary key,
  id          uuid    not null unique,
  event       text    not null,
  actor       text    not null,
  reason      text    not null,
  filter      text    not null,
  force       boolean not null,
  created     bigint  not null,
  destination text    not null, -- where a redrive sends letters; empty: to their queues
  statuses    text[]  not null, -- that a purge is for
  reviewed    boolean not null,
  guarded     boolean not null  -- what changed since is skipped
);

create table @.item (
  operation   bigint not null,
  ordinal     bigint not null,
  letter      bigint not null, -- letter.pos, which it may outlive
  state       text   not null, -- pending, skipped, failed, done; of a redrive what became of the message, instead of done
  early       text,            -- outcome of a pending item that a broker has already
  revision    bigint not null, -- of the letter when it was chosen
  fingerprint text   not null, -- likewise
  at          bigint not null default 0, -- when the state was written; 0: it is that of the plan
  primary key (operation, ordinal),
  unique (operation, letter)
);

create index item_waits on @.item (letter) where state = 'pending';

-- The audits. Entries of one call that differ only in their subjects are one row, with one subject
-- and one hash of 32 bytes for each entry.
create table @.audit (
  queue     integer not null,
  number    bigint  not null, -- of the last of them
  at        bigint  not null,
  actor     text    not null,
  event     text    not null,
  reason    text    not null,
  subjects  uuid[]  not null, -- null is none
  hashes    bytea   not null,
  operation uuid,             -- that they are part of
  primary key (queue, number)
);

alter table @.audit alter subjects set storage external, alter hashes set storage external;
create index audit_at on @.audit (at);

-- Rules write most entries. What people did is found without reading those.
create index audit_people on @.audit (at) where actor <> 'nixie';

-- IDs grow with time, so that a new one goes to the end of the index: a list of new ones to be put in
-- order later would save nothing, and one call would wait for that.
create index audit_subjects on @.audit using gin (subjects) with (fastupdate = off);

-- The messages of letters that were purged: the audit names the letters alone.
create table @.purged (
  letter  uuid    primary key,
  message uuid    not null,
  queue   integer not null,
  at      bigint  not null
);

create index purged_message on @.purged (message);

-- The ends of each audit: its newest entry, and the newest that was pruned. A transaction that adds
-- entries locks the row after all its other work and holds it until its commit.
create table @.chain (
  queue       integer primary key,
  number      bigint  not null default 0,
  hash        bytea   not null default '',
  gone_number bigint  not null default 0,
  gone_hash   bytea   not null default ''
);

-- How many messages have ended, as a sum of changes. Transactions only add rows, so that none waits for
-- another; now and then many rows become one.
create table @.counter (
  queue  integer  not null,
  state  smallint not null,
  reason text     not null, -- of those that were discarded; else empty
  n      bigint   not null
);

-- Counts that outlive their rows.
create table @.tally (
  queue integer not null,
  what  text    not null, -- pruned, purged: by the state of the message; discarded: by reason
  name  text    not null,
  n     bigint  not null,
  primary key (queue, what, name)
);

-- The failures of messages, wherever they are kept.
create view @.history as
select pos, ordinal, at, failed, class, reason, decision, text, low, doc from @.failure
union all
select pos, ordinal, at, last_failed, class, reason, decision, text, text_low, doc
from @.letter
where doc is not null;

-- The entries of the audits. last is the number of the row that an entry is part of.
create view @.entry as
select
  a.queue, a.number as last, a.number - cardinality(a.subjects) + u.i as number, a.at, a.actor, a.event, u.subject,
  a.reason, substr(a.hashes, (32 * u.i - 31)::int, 32) as hash,
  case when u.i > 1 then substr(a.hashes, (32 * u.i - 63)::int, 32) end as before, a.operation,
  a.subjects as among -- the subjects of the whole row, by which the index finds it
from @.audit a
cross join lateral unnest(a.subjects) with ordinality u (subject, i);

-- The plain messages that no claim has reached yet.
create view @.fresh as
select m.queue, m.pos, m.tx, m.enqueued
from @.cursor c
join @.message m on m.queue = c.queue and m.by_range and (m.tx, m.pos) > (c.tx, c.pos)
union all
select m.queue, m.pos, m.tx, m.enqueued
from @.cursor c
cross join lateral unnest(c.late, c.done) l (tx, done)
join @.message m on m.queue = c.queue and m.by_range and m.tx = l.tx and m.pos > l.done;

-- The messages that are leased by batches; stream is set for those of the ordered path.
create view @.member as
select b.n as batch, b.queue, b.owner, b.claimed, b.until, m.pos, m.id, m.tx, m.enqueued, null::bigint as stream
from @.batch b
cross join lateral (
  select m.pos, m.id, m.tx, m.enqueued
  from @.message m
  where m.queue = b.queue and m.by_range and (m.tx, m.pos) > (b.after_tx, b.after)
  order by m.tx, m.pos
  limit b.members
) m
where b.positions is null
  and (m.tx, m.pos) <= (b.last_tx, b.last)
  and not exists (select from @.log l where l.pos = m.pos)
  and not exists (select from @.pending p where p.pos = m.pos)
  and (
    b.in_ranges = 0
    or not exists (
      select
      from (
        select s.last_tx, s.last
        from @.success_range s
        where s.queue = b.queue and (s.after_tx, s.after) < (m.tx, m.pos)
        order by s.after_tx desc, s.after desc
        limit 1
      ) s
      where (s.last_tx, s.last) >= (m.tx, m.pos)
    )
  )
union all
select b.n, b.queue, b.owner, b.claimed, b.until, m.pos, m.id, m.tx, m.enqueued, u.stream
from @.batch b
cross join lateral unnest(b.streams, b.positions) u (stream, pos)
cross join lateral (select m.pos, m.id, m.tx, m.enqueued from @.message m where m.pos = u.pos limit 1) m
where not exists (select from @.log l where l.pos = m.pos)
  and not exists (select from @.pending p where p.pos = m.pos);

-- The messages in success ranges.
create view @.success as
select s.queue, s.after_tx, s.after, s.ended, s.received, m.pos
from @.success_range s
cross join lateral (
  select m.pos, m.tx
  from @.message m
  where m.queue = s.queue and m.by_range and (m.tx, m.pos) > (s.after_tx, s.after)
  order by m.tx, m.pos
  limit s.members
) m
where (m.tx, m.pos) <= (s.last_tx, s.last);

-- The messages of ordered paths that have not been claimed; ready tells whether a claim may take it. The
-- first message of a mixed stream may have been added by a caller's transaction, and no claim has
-- recomputed the head since: then it is ready if nothing is before it.
create view @.follower as
select
  s.queue, s.n as stream, m.pos, m.enqueued,
  m.nth = 1 and (
    s.has_token
    or not exists (
      select from @.pending p
      where p.stream = s.n and p.stream is not null and (p.state = 1 or p.rank < m.pos)
    )
    and not exists (select from @.letter l where l.stream = s.n and l.blocks and l.rank < m.pos)
  ) as ready
from @.stream s
cross join lateral (
  select m.pos, m.enqueued, row_number() over (order by m.pos) as nth
  from @.message m
  where m.ordered_stream = s.n and m.pos > s.at and (select l.pos from @.log l where l.pos = m.pos) is null
) m
where not (
  s.has_token
  and m.nth = 1
  and exists (
    select from @.batch b
    where b.queue = s.queue
      and b.after_tx = '0'
      and b.after <= m.pos
      and b.last >= m.pos
      and m.pos = any(b.positions)
  )
);

-- Resolves a token of stream $1 from position $2 on. It returns the position of the message that may be
-- claimed, or null if the head of the stream has to be recomputed because the stream is mixed. It
-- returns no row if the stream has nothing left, or its first message waits for another one.
create function @.resolve_token(bigint, bigint) returns table (name text, pos bigint)
language sql stable parallel safe as $$
  select s.name, case when s.has_token then f.pos end
  from (select s.* from @.stream s where s.n = $1 limit 1) s
  cross join lateral (
    select m.pos from @.message m where m.ordered_stream = $1 and m.pos >= $2 order by m.pos limit 1
  ) f
  where not s.has_token
    or f.pos > s.at
      and coalesce(
        (
          select b.pos <= s.at or (select l.pos from @.log l where l.pos = b.pos) is not null
          from @.message b
          where b.ordered_stream = $1 and b.pos < f.pos
          order by b.pos desc
          limit 1
        ),
        true
      )
$$;

-- The tokens that no claim has taken and that are not void.
create view @.valid_token as
with given as materialized (
  select t.queue, u.stream, u.pos
  from @.token t
  cross join lateral unnest(t.streams, t.positions) u (stream, pos)
)
select g.queue, g.stream, g.pos
from given g
join @.message m on m.pos = g.pos and m.ordered_stream = g.stream
union all
select distinct g.queue, g.stream, f.pos
from given g
cross join lateral @.resolve_token(g.stream, -g.pos) f
where g.pos < 0 and f.pos is not null and f.pos not in (select o.pos from given o)
union all
select queue, stream, pos from @.ready;

-- What is known of a message now, wherever it lies:
--
--   location  meaning                          state          row_state
--   --------  -------------------------------  -------------  -----------------------------
--   1         in pending                       0 or 1         that of the row: 0, 1, 6
--   2         in log or a success range        2, 3, 4 or 5   null
--   3         in a batch by range              1              null
--   4         no claim has reached it          0              null
--   5         on the ordered path              0              6
--   6         in a batch by the ordered path   1              null
--   null      lost                             null           null
create view @.current as
select
  m.pos, m.queue, q.name as queue_name, m.id, m.type, m.key, m.stream, m.dedupe, m.priority, m.hash, m.headers,
  m.origin, m.enqueued, m.expires,
  case
    when p.pos is not null then 1
    when l.pos is not null or e.ended is not null then 2
    when b.n is not null then case when m.by_range then 3 else 6 end
    when m.by_range then 4
    when m.pos > s.at then 5
  end as location,
  b.n as batch,
  case
    when p.pos is not null then case p.state when 6 then 0 else p.state end
    when l.pos is not null then l.state
    when e.ended is not null then 2
    when b.n is not null then 1
    when m.by_range or m.pos > s.at then 0
  end as state,
  case when p.pos is not null then p.state when b.n is null and m.pos > s.at then 6 end as row_state,
  case
    when p.pos is not null then p.due
    when l.pos is null and e.ended is null and b.n is null then m.enqueued
    else 0
  end as due,
  coalesce(p.queue_pos, l.queue_pos, m.pos) as queue_pos,
  coalesce(
    p.attempts, l.attempts, case when l.pos is not null or e.ended is not null or b.n is not null then 1 else 0 end
  ) as attempts,
  coalesce(
    p.deliveries, l.deliveries, case when l.pos is not null or e.ended is not null or b.n is not null then 1 else 0 end
  ) as deliveries,
  coalesce(p.crashes, l.crashes, 0) as crashes,
  coalesce(p.generation, l.generation, 1) as generation,
  coalesce(p.redrives, l.redrives, 0) as redrives,
  coalesce(p.redriven, l.redriven, 0) as redriven,
  coalesce(
    p.number, l.number, case when l.pos is not null or e.ended is not null or b.n is not null then 1 else 0 end
  ) as number,
  coalesce(p.owner, b.owner, 0) as owner,
  coalesce(p.until, b.until, 0) as until,
  coalesce(p.claimed, b.claimed, 0) as claimed,
  coalesce(p.received, l.received, e.received, b.claimed, 0) as received,
  p.abandoned,
  coalesce(p.steps, l.steps) as steps,
  coalesce(p.stream, s.n) as in_stream,
  coalesce(p.rank, case when s.n is not null then m.pos else 0 end) as rank,
  coalesce(l.ended, e.ended, 0) as ended,
  coalesce(p.may_pass, false) as may_pass,
  coalesce(p.gap, l.gap, false) as gap,
  coalesce(p.reason, l.reason, '') as reason
from @.message m
join @.queue q on q.n = m.queue
-- by the index, also if the table had few rows when the plan was made
left join lateral (select * from @.pending p where p.pos = m.pos limit 1) p on true
left join lateral (select * from @.log l where l.pos = m.pos limit 1) l on true
left join lateral (
  select s.ended, s.received
  from (
    select s.*
    from @.success_range s
    where p.pos is null
      and l.pos is null
      and m.by_range
      and s.queue = m.queue
      and (s.after_tx, s.after) < (m.tx, m.pos)
    order by s.after_tx desc, s.after desc
    limit 1
  ) s
  where (s.last_tx, s.last) >= (m.tx, m.pos)
) e on true
left join lateral (
  (
    select b.*
    from (
      select b.*
      from @.batch b
      where p.pos is null
        and l.pos is null
        and e.ended is null
        and m.by_range
        and b.queue = m.queue
        and (b.after_tx, b.after) < (m.tx, m.pos)
      order by b.after_tx desc, b.after desc
      limit 1
    ) b
    where (b.last_tx, b.last) >= (m.tx, m.pos)
  )
  union all
  (
    select b.*
    from @.batch b
    where p.pos is null
      and l.pos is null
      and m.ordered_stream is not null
      and b.queue = m.queue
      and b.after_tx = '0'
      and b.after <= m.pos
      and b.last >= m.pos
      and m.pos = any(b.positions)
    limit 1
  )
) b on true
left join lateral (
  select s.* from @.stream s where p.pos is null and l.pos is null and s.n = m.ordered_stream limit 1
) s on true;

-- The positions of messages with these IDs; numbered tells whether an ID says it.
create function @.positions_of(ids uuid[]) returns bigint[] language sql stable parallel safe
as $$ select array(select m.pos from unnest(ids) u (id) cross join lateral (
  (select pos from @.message where pos = @.pos_of(u.id) and id = u.id limit 1)
  union all (select pos from @.message where id = u.id and not numbered limit 1)) m) $$;

-- A message as the outbox shows it, without its status.
create view @.outgoing as
select
  c.pos, c.location, c.state, c.reason, c.id as message_id, c.queue_name as destination, c.type as event_type,
  c.stream as stream_id, c.attempts,
  (select m.body from @.message m where m.pos = c.pos) as event_data,
  case when (c.steps::jsonb) ? 'EventStored' then 2 else 0 end
    + case when (c.steps::jsonb) ? 'Published' then 4 else 0 end as steps,
  (select f.text from @.history f where f.pos = c.pos order by f.ordinal desc limit 1) as error,
  case c.reason
    when 'transport-unavailable' then 1
    when 'handler' then 2
    when 'validation' then 3
    when 'timeout' then 4
    when 'serialization' then 5
    when 'dependency' then 6
    when 'poison' then 7
    else 99
  end as failure_reason,
  case when c.state = 0 and c.due > c.enqueued then to_timestamp(c.due / 1e9) end as scheduled_for,
  (select o.name from @.owner o where o.n = c.owner) as instance_id,
  case when c.until > 0 then to_timestamp(c.until / 1e9) end as lease_expiry,
  to_timestamp(c.enqueued / 1e9) as created_at,
  case when c.state = 2 then to_timestamp(c.ended / 1e9) end as published_at
from @.current c;

-- The same for people who know the tables of a transactional outbox. The status is a sum: 1 stored,
-- 2 event stored, 4 published, 32768 failed. Messages that lie in different tables are parts of their
-- own, so that a query for a status reads only those that may have it.
create view @.nixie_outbox as
select
  message_id, destination, event_type, event_data, stream_id, status, attempts, error, failure_reason, scheduled_for,
  instance_id, lease_expiry, created_at, published_at, pos
from (
  select o.*, 1 + o.steps + case when o.reason <> '' then 32768 else 0 end as status
  from @.pending p
  join @.outgoing o on o.pos = p.pos
  union all
  select o.*, 1 + o.steps + case when o.reason <> '' then 32768 else 0 end
  from @.letter l
  join @.outgoing o on o.pos = l.pos
  where o.state = 5
  union all
  select o.*, 1 + o.steps from @.log l join @.outgoing o on o.pos = l.pos where l.state in (3, 4)
  union all
  select o.*, 7 from @.outgoing o where o.state = 2
  union all
  select o.*, 1 from @.outgoing o where o.location > 2
) o;

-- And for people who know a log of jobs: one row for each that ended, and for each purged letter.
create view @.nixie_job_log as
select
  job_id, entrypoint, status, exception_type, exception_message, traceback, to_timestamp(ended / 1e9) as created, pos
from (
  select
    m.id as job_id, q.name as entrypoint, 'exception' as status, coalesce(f.doc::json->>'type', '') as exception_type,
    f.text as exception_message, coalesce(f.doc::json->>'stack', '') as traceback, g.ended, m.pos
  from @.letter l
  join @.log g on g.pos = l.pos and g.state = 5
  join @.message m on m.pos = l.pos
  join @.queue q on q.n = m.queue
  left join lateral (select * from @.history f where f.pos = m.pos order by f.ordinal desc limit 1) f on true
  union all
  select m.id, q.name, case g.state when 3 then 'deleted' else 'canceled' end, '', null, '', g.ended, m.pos
  from @.log g
  join @.message m on m.pos = g.pos
  join @.queue q on q.n = m.queue
  where g.state in (3, 4)
  union all
  select c.id, c.queue_name, 'successful', '', null, '', c.ended, c.pos from @.current c where c.state = 2
  union all
  select p.message, q.name, 'deleted', null, null, null, p.at, null
  from @.purged p
  join @.queue q on q.n = p.queue
) l;

-- And their jobs that have not ended. A process has one heartbeat for all its jobs.
create view @.nixie_jobs as
select
  m.id, q.name as entrypoint, case w.owner when 0 then 'queued' else 'picked' end as status, o.seen as heartbeat,
  to_timestamp(greatest(w.claimed, m.enqueued) / 1e9) as updated
from (
  select pos, owner, claimed from @.pending
  union all
  select pos, owner, claimed from @.member
  union all
  select pos, 0, 0 from @.fresh
  union all
  select pos, 0, 0 from @.follower
) w
join @.message m on m.pos = w.pos
join @.queue q on q.n = m.queue
left join @.owner o on o.n = w.owner;

-- The same views for messages with given IDs: nixie_outbox('…', '…').
create function @.nixie_outbox(variadic ids uuid[]) returns setof @.nixie_outbox language sql stable as $$
  select * from @.nixie_outbox where pos = any(@.positions_of(ids))
$$;

create function @.nixie_job_log(variadic ids uuid[]) returns setof @.nixie_job_log language sql stable as $$
  select * from @.nixie_job_log where pos = any(@.positions_of(ids))
  union all
  select p.message, q.name, 'deleted', null, null, null, to_timestamp(p.at / 1e9), null
  from @.purged p
  join @.queue q on q.n = p.queue
  where p.message = any(ids)
$$;

create function @.nixie_jobs(variadic ids uuid[]) returns setof @.nixie_jobs language sql stable as $$
  select
    c.id, c.queue_name, case c.owner when 0 then 'queued' else 'picked' end, o.seen,
    to_timestamp(greatest(c.claimed, c.enqueued) / 1e9)
  from @.current c
  left join @.owner o on o.n = c.owner
  where c.pos = any(@.positions_of(ids)) and c.state in (0, 1)
$$;
