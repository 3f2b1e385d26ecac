-- A success costs one row of a log. Only exceptions have rows of their own.
--
-- | table   | row                                                                          |
-- |---------|------------------------------------------------------------------------------|
-- | message | each message, written once                                                   |
-- | batch   | a lease of a range: the new messages from first to last that a claim took    |
-- | pending | a message with a delay, priority, stream, retry, release, crash or redrive,  |
-- |         | until it ends                                                                |
-- | log     | each message that has ended                                                  |
--
-- The position `pos` of a message is (queue number << 40 | sequence number), so that the messages
-- of a queue are stored in the order of their arrival. A claim of new messages moves the queue's
-- cursor past them and adds one row of `batch`.
--
-- A row that people read has two sums. The program computes `texts` from the texts of the row; a
-- generated column computes `sums` from its numbers, and `sum` stores that. When a bit flips on the
-- disk, one of them no longer fits.
--
-- Moments are nanoseconds since 1970 UTC, 0 is none. JSON texts are null when they are empty.

create table meta (
  name  text primary key,
  value text not null
) strict, without rowid;

create table queue (
  n        integer primary key,           -- 1, 2, 3 … at most 2^22
  name     text    not null unique,
  last     integer not null default 0,    -- sequence number of the newest message
  cursor   integer not null default 0,    -- sequence number up to which ranges were handed out
  fresh     integer not null default 0,   -- messages beyond the cursor that ranges will hand out
  largest   integer not null default 0,   -- upper bound of the bytes of a body
  succeeded integer not null default 0,   -- rows of log by state, also those deleted since
  discarded integer not null default 0,
  canceled  integer not null default 0,
  dead      integer not null default 0,
  paused   integer not null default 0,
  widest   integer not null default 0,    -- widest dedupe scope: 0 active, 1 unresolved, 2 ever
  settings text    not null default '{}', -- QueueSettings as JSON
  texts    integer not null default 1234167627, -- the sum of empty settings
  sums     integer generated always as (
    last % 8191 + cursor % 8179 * 3 + fresh % 8171 * 5 + largest % 8167 * 7 + succeeded % 8161 *
    11 + discarded % 8147 * 13 + canceled % 8123 * 17 + dead % 8117 * 19 + paused + widest
  ) virtual,
  sum      integer generated always as (sums) stored
) strict;

create table message (
  pos      integer primary key,
  id       blob    not null,
  own      integer not null,              -- 1: has or had a row of pending; ranges skip it
  type     text,
  key      text,
  stream   text,
  dedupe   text,
  priority integer not null,
  body     blob    not null,
  hash     blob    not null,
  headers  text,
  origin   text,
  enqueued integer not null,
  expires  integer not null,
  texts    integer not null default 0,
  sums     integer generated always as (
    priority + enqueued % 8191 * 16 + expires % 8179 * 131072
  ) virtual,
  sum      integer generated always as (sums) stored
) strict;

create unique index message_id  on message (id);
create index        message_key on message (key) where key is not null;
create index        message_origin on message (origin) where origin is not null;

create table batch (
  n       integer primary key autoincrement,
  owner   integer not null,
  first   integer not null,               -- members: messages with own = 0 from first to last
  last    integer not null,
  members integer not null,
  left    integer not null,               -- members that are not settled
  has_rows   integer not null default 0,     -- 1: some members have or had a row of pending
  claimed integer not null,
  until   integer not null,
  sums     integer generated always as (claimed % 8191 + until % 8179 * 8192) virtual,
  sum      integer generated always as (sums) stored
) strict;

create table pending (
  pos        integer primary key,
  queue      integer not null,
  state      integer not null,            -- 0 queued, 1 leased, 6 behind others of its stream
  priority   integer not null,
  due        integer not null,            -- claims skip it before
  attempts   integer not null,
  deliveries integer not null,
  crashes    integer not null default 0,  -- without an answer in between
  alone      integer not null default 0,  -- 1: it ran alone at its last two deliveries
  generation integer not null default 1,
  redrives   integer not null default 0,
  number     integer not null,            -- of the newest lease; grows over all generations
  owner      integer not null default 0,  -- of the lease, 0 when queued
  until      integer not null default 0,  -- end of the lease, 0 when queued
  received   integer not null,            -- first claim of all generations, 0 before it
  redriven   integer not null default 0,  -- begin of this generation, 0 in the first
  abandoned  text,                        -- the holder that vanished; a worker has to judge it
  steps      text,
  stream     integer,                     -- number of its stream, in an ordered queue
  rank       integer not null default 0,  -- order in the stream: pos, or a later one
  may_pass   integer not null default 0,  -- 1: may go before others of its stream
  gap        integer not null default 0,  -- 1: was handed out out of order
  claimed    integer not null default 0,  -- time of the newest claim
  reason     text,                        -- of the newest failure
  sums     integer generated always as (
    due % 8191 + received % 8179 * 3 + claimed % 8171 * 5 + number % 8167 * 7 + priority +
    attempts * 3 + deliveries * 5 + crashes * 7 + generation * 11 + redrives * 13 +
    redriven % 8161 * 17
  ) virtual,
  sum      integer generated always as (sums) stored
) strict;

-- Messages behind others of their streams are not in pending_due, so that a blocked stream costs
-- claims nothing.
create index pending_due     on pending (queue, priority, due) where state = 0 and crashes = 0;
create index pending_suspect on pending (queue, priority, due, crashes, abandoned)
  where state = 0 and crashes > 0;
create index pending_judged  on pending (queue, due)
  where state = 0 and abandoned is not null;
create index pending_lease   on pending (until)                where state = 1;
create index pending_behind  on pending (queue, due)           where state = 6;
create index pending_often   on pending (attempts)             where attempts >= 5;
create index pending_crashed on pending (crashes)              where crashes > 0;

create index pending_stream  on pending (stream, rank)      where stream is not null;
create index pending_order   on pending (stream, due, rank) where stream is not null;
create index pending_passing on pending (stream, due, rank) where may_pass = 1;
create index pending_passer  on pending (queue)             where may_pass = 1 and state = 0;
create index pending_open    on pending (stream)            where stream is not null and state <> 6;

-- The streams of ordered queues that have queued or leased messages, or letters in the stream.
create table stream (
  n       integer primary key,
  queue   integer not null,
  name    text    not null,
  top     integer not null default 0,     -- highest rank that a claim has handed out
  blocked integer not null default 0,     -- 1: a dead message blocks it
  due     integer not null default 0      -- when its next message may be handed out, 0 is at once
) strict;

create unique index stream_name    on stream (queue, name);
create index        stream_urgency on stream (queue, blocked desc, due desc, n);

create table log (
  pos        integer primary key,
  state      integer not null,            -- 2 succeeded, 3 discarded, 4 canceled, 5 dead
  ended      integer not null,
  received   integer not null,
  attempts   integer,                     -- up to number: null if 1, 1, 0, 1, 0, 1
  deliveries integer,
  crashes    integer,
  generation integer,
  redrives   integer,
  redriven   integer,                     -- begin of this generation, null in the first
  number     integer,
  steps      text,
  note       text,                        -- reason of a discard or cancel
  gap        integer,                     -- 1: was handed out out of order
  sums     integer generated always as (
    ended % 8191 - received % 8179 + iif(attempts is null, 0, attempts * 3 + deliveries * 5 +
    crashes * 7 + generation * 11 + redrives * 13 + number % 8167 + coalesce(redriven, 0) % 8161 * 17)
  ) virtual,
  sum      integer generated always as (sums) stored
) strict;

create table failure (
  pos      integer not null,
  ordinal  integer not null,              -- 1, 2, 3 … of the message; no number is reused
  queue    integer not null,
  at       integer not null,              -- time of the append by the store's clock
  decision text    not null,
  reason   text    not null,
  text     text    not null,
  doc      text    not null,              -- the failure as JSON, without what has columns
  texts    integer not null default 0,
  sums     integer generated always as (at % 8191) virtual,
  sum      integer generated always as (sums) stored,
  primary key (pos, ordinal)
) strict, without rowid;

create index failure_retry on failure (queue, at) where decision = 'retry';

create table attachment (
  pos       integer not null,
  failure   integer not null,             -- failure.ordinal
  ordinal   integer not null,
  name      text    not null,
  data      blob    not null,
  truncated integer not null,
  texts     integer not null default 0,
  sums     integer generated always as (truncated % 8191) virtual,
  sum      integer generated always as (sums) stored,
  primary key (pos, failure, ordinal)
) strict;

-- The properties by which letters are counted. Letters with equal properties share a facet, so
-- facets are few however many letters there are. Filters read facets, and counts are sums over
-- them.
create table facet (
  n            integer primary key,
  queue        integer not null,
  type         text    not null,          -- of the message
  status       text    not null,
  cause        text    not null,
  class        text    not null,
  reason       text    not null,
  signature    text    not null,
  fingerprint  text    not null,
  redrivable   integer not null,
  needs_review integer not null,
  redrives     integer not null,
  attempts     integer not null,          -- attempts and crashes: 0 while redriving
  crashes      integer not null,
  letters      integer not null           -- 1 and more
) strict;

create index facet_group on facet (fingerprint, queue);

create table letter (
  pos          integer primary key,       -- of its message; not used again, as items outlive it
  id           blob    not null,
  facet        integer not null,          -- the facet of the columns up to needs_review
  queue        integer not null,
  status       text    not null,
  cause        text    not null,
  class        text    not null,
  reason       text    not null,
  signature    text    not null,
  fingerprint  text    not null,
  redrivable   integer not null,
  needs_review integer not null,
  rule         text    not null,
  text         text    not null,          -- of the last failure, for filters
  first_failed integer not null,
  last_failed  integer not null,
  died         integer not null,
  resolved     integer not null default 0,
  operation    blob,
  note         text    not null,
  revision     integer not null default 1,
  stream       integer,                   -- while its message is dead in an ordered stream
  rank         integer not null default 0,
  blocks       integer not null default 0, -- 1: the later messages of the stream wait
  flow         text,                      -- name of the stream of its message, ordered or not
  rule_sum     integer not null default 0,
  note_sum     integer not null default 0,
  sums     integer generated always as (
    first_failed % 8191 + last_failed % 8179 * 3 + died % 8171 * 5 + resolved % 8167 * 7 +
    revision % 8161
  ) virtual,
  sum      integer generated always as (sums) stored
) strict;

create unique index letter_id    on letter (id);
create index        letter_died  on letter (died);
create index        letter_facet on letter (facet, died);
create index        letter_flow on letter (flow, died) where flow is not null;
create index        letter_operation on letter (operation, died) where operation is not null;
create index        letter_stream on letter (stream, blocks, rank) where stream is not null;

create table note (
  letter  integer not null,               -- letter.pos
  ordinal integer not null,
  at      integer not null,
  by      text    not null,
  text    text    not null,
  texts   integer not null default 0,
  sums     integer generated always as (at % 8191) virtual,
  sum      integer generated always as (sums) stored,
  primary key (letter, ordinal)
) strict, without rowid;

-- A message as it was before an operator's first edit.
create table original (
  pos     integer primary key,
  body    blob    not null,
  hash    blob    not null,
  headers text,
  at      integer not null,               -- time of the first edit
  by      text    not null,
  texts   integer not null default 0,
  sums     integer generated always as (at % 8191) virtual,
  sum      integer generated always as (sums) stored
) strict;

create table dedupe (
  queue integer not null,
  key   text    not null,
  pos   integer not null,                 -- of the message that holds the key
  primary key (queue, key)
) strict, without rowid;

create table inbox (
  scope text    not null,
  key   text    not null,
  at    integer not null,                 -- time of Once by the store's clock
  primary key (scope, key)
) strict, without rowid;

create index inbox_at on inbox (at);

create table owner (
  n       integer primary key autoincrement,
  name    text    not null,
  lock    text    not null,               -- name of the file whose kernel lock the owner holds
  started integer not null,
  breakers text   not null default ''   -- circuit breakers of its workers that are not closed
) strict;

create table operation (
  n       integer primary key,
  id      blob    not null unique,
  event   text    not null,
  actor   text    not null,
  reason  text    not null,
  filter  text    not null,
  force   integer not null,
  created integer not null,
  destination text    not null,           -- target of a redrive; empty: the queues of the letters
  statuses    text    not null,           -- statuses of a purge, joined by commas
  reviewed    integer not null,
  guarded     integer not null            -- 1: letters that changed since the plan are skipped
) strict;

create table item (
  operation integer not null,
  ordinal   integer not null,
  letter    integer not null,             -- letter.pos
  state     text    not null,             -- pending, skipped, failed, done; of a redrive what
                                          -- became of the message, instead of done
  early   text    not null default '',    -- outcome of a pending item that a broker has already
  error     text    not null default '',
  revision    integer not null,           -- of the letter in the plan
  fingerprint text    not null,           -- of the letter in the plan
  at        integer not null default 0, -- when the state was written; 0: it is that of the plan
  primary key (operation, ordinal)
) strict, without rowid;

create unique index item_letter on item (operation, letter);
create index        item_waits  on item (letter) where state = 'pending';
create index        item_state  on item (operation, state, ordinal, at);

create table audit (
  queue   integer not null,
  number  integer not null,
  at      integer not null,
  actor   text    not null,
  event   text    not null,
  subject blob,
  reason  text    not null,
  hash    blob    not null,
  operation blob,                         -- the operation that the event is part of
  primary key (queue, number)
) strict, without rowid;

create index audit_at      on audit (at);
create index audit_subject on audit (subject);

-- Rules write most entries. What people did is found without reading those.
create index audit_people on audit (at) where actor <> 'nixie';

-- The newest pruned entry of a chain, from which the rest of the chain goes on.
create table anchor (
  queue  integer primary key,
  number integer not null,
  hash   blob    not null
) strict;

-- Counters for overviews, which therefore do not read each message or letter. A transaction adds
-- its changes at its end and deletes counters that are 0. The views below name the columns of each.
create table counter (
  what    integer not null,
  subject integer not null,
  number  integer not null,
  slot    integer not null,
  name    text    not null,
  n       integer not null,               -- 1 and more
  primary key (what, subject, number, slot, name)
) strict, without rowid;

-- Rows of pending that are not leased. A slot is the due time >> 36: about 69 s.
create view waiting as
select subject as queue, number as state, slot, n
from counter where what = 0;

-- Rows of pending whose messages have failed before.
create view retrying as
select subject as queue, number as attempts, name as reason, slot as leased, n
from counter where what = 1;

-- Letters of a facet by the hour of their death, since 1970.
create view deaths as
select subject as facet, slot as hour, n
from counter where what = 2 and number = 0;

-- Counts of deleted rows: pruned and purged by the state of the message. Discarded by reason.
create view tally as
select subject as queue, case what when 3 then 'pruned' when 4 then 'purged' else 'discarded' end
  as what, name, n
from counter where what >= 3;

-- Each message with its state now, from pending, log, batch or the cursor of its queue.
create view current as
select m.pos, m.pos >> 40 as queue, q.name as queue_name, m.id, m.own, m.type, m.key, m.stream,
       m.dedupe, m.priority, m.hash, m.headers, m.origin, m.enqueued, m.expires,
       case when p.state = 6 then 0
            when p.pos is not null then p.state
            when g.pos is not null then g.state
            when m.own = 0 and m.pos & 0xffffffffff <= q.cursor then 1
            else 0 end as state,
       case when p.pos is not null then p.due else 0 end as due,
       p.pos is not null as has_row,
       case when p.pos is not null then p.attempts
            when g.pos is not null then coalesce(g.attempts, 1)
            else m.pos & 0xffffffffff <= q.cursor and m.own = 0 end as attempts,
       case when p.pos is not null then p.deliveries
            when g.pos is not null then coalesce(g.deliveries, 1)
            else m.pos & 0xffffffffff <= q.cursor and m.own = 0 end as deliveries,
       coalesce(p.crashes, g.crashes, 0) as crashes,
       coalesce(p.generation, g.generation, 1) as generation,
       coalesce(p.redrives, g.redrives, 0) as redrives,
       coalesce(p.redriven, g.redriven, 0) as redriven,
       coalesce(p.number, g.number, 1) as number,
       coalesce(p.owner, 0) as owner, coalesce(p.until, 0) as until,
       coalesce(p.received, g.received, 0) as received,
       coalesce(p.steps, g.steps) as steps,
       coalesce(g.ended, 0) as ended, g.note, coalesce(p.may_pass, 0) as may_pass,
       coalesce(p.gap, g.gap, 0) as gap, coalesce(p.claimed, 0) as claimed
from message m join queue q on q.n = m.pos >> 40
     left join pending p on p.pos = m.pos
     left join log g on g.pos = m.pos;
