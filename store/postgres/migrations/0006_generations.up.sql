-- The log of jobs, by time: each generation that ended has a row, until its message is pruned. What is
-- kept anyway tells of it, so that a death writes no row more:
--
--   part      a row for each                        it is read from
--   --------  ------------------------------------  ----------------------------------
--   success   success, after the first generation   log
--             too, but for those of ranges
--   range     member of a success range             success_range, message
--   deleted   discarded message                     log
--   canceled  canceled message                      log
--   latest    letter: the latest death              letter
--   earlier   death before that                     failure, by its decision
--   purged    purged letter                         purged
--
-- The parts are tables as they are, and each has an index by time: so PostgreSQL merges them where a
-- query asks for the newest, and reads no more than that.
create index log_succeeded_at on @.log (to_timestamp(ended / 1e9::float8)) where state = 2;
create index log_discarded_at on @.log (to_timestamp(ended / 1e9::float8)) where state = 3;
create index log_canceled_at  on @.log (to_timestamp(ended / 1e9::float8)) where state = 4;
create index success_range_at on @.success_range (to_timestamp(ended / 1e9::float8));
create index letter_died_at   on @.letter (to_timestamp(died / 1e9::float8));
create index failure_death_at on @.failure (to_timestamp(at / 1e9::float8)) where decision in ('bury', 'hold', 'halt');
create index purged_at        on @.purged (to_timestamp(at / 1e9::float8));

-- The generation in which a message died last.
create function @.last_death(bigint) returns bigint language sql stable parallel safe as $$
  select coalesce(l.generation, 1) - case l.state when 5 then 0 else 1 end from @.log l where l.pos = $1
  union all
  select p.generation - 1 from @.pending p where p.pos = $1
$$;

-- The generation of a failure, by its document.
create function @.generation_in(text) returns bigint language sql immutable parallel safe as $$
  select coalesce(($1::json->>'generation')::bigint, 1)
$$;

-- Whether the failure by which message $1 died, with ordinal $2 and document $3, is the last one of a
-- generation before its latest death.
create function @.died_earlier(bigint, bigint, text) returns boolean language sql stable parallel safe as $$
  select @.generation_in($3) < @.last_death($1) and not exists (
    select from @.history n
    where n.pos = $1 and n.ordinal = $2 + 1 and @.generation_in(n.doc) = @.generation_in($3)
  )
$$;

-- What the log of jobs says of the death of message $1 in generation $2: by its last failure there.
create function @.told_of_death(bigint, bigint) returns table (type text, text text, stack text)
language sql stable parallel safe as $$
  select f.doc::json->>'type', f.text, f.doc::json->>'stack'
  from @.history f
  where f.pos = $1 and @.generation_in(f.doc) = $2
  order by f.ordinal desc
  limit 1
$$;

create or replace view @.nixie_job_log as
select
  m.id as job_id, q.name as entrypoint, e.status,
  case when e.part in ('latest', 'earlier') then coalesce(f.type, '') when e.part <> 'purged' then '' end as exception_type,
  f.text as exception_message,
  case when e.part in ('latest', 'earlier') then coalesce(f.stack, '') when e.part <> 'purged' then '' end as traceback,
  to_timestamp(e.ended / 1e9::float8) as created, m.pos
from (
  select
    'success' as part, 'successful' as status, pos, state, ended, null::text as decision, null::bigint as ordinal,
    null::text as doc, null::uuid as message, queue, null::xid8 as after_tx, null::bigint as after, null::integer as members
  from @.log
  union all
  select 'deleted', 'deleted', pos, state, ended, null, null, null, null, queue, null, null, null
  from @.log
  union all
  select 'canceled', 'canceled', pos, state, ended, null, null, null, null, queue, null, null, null
  from @.log
  union all
  select 'range', 'successful', null, null, ended, null, null, null, null, queue, after_tx, after, members
  from @.success_range
  union all
  select 'latest', 'exception', pos, null, died, null, null, null, null, queue, null, null, null
  from @.letter
  union all
  select 'earlier', 'exception', pos, null, at, decision, ordinal, doc, null, queue, null, null, null
  from @.failure
  union all
  select 'purged', 'deleted', null, null, at, null, null, null, message, queue, null, null, null
  from @.purged
) e
cross join lateral (
  select m.pos, m.id, m.queue from @.message m where m.pos = e.pos
  union all
  (
    select m.pos, m.id, m.queue
    from @.message m
    where e.part = 'range' and m.queue = e.queue and m.by_range and (m.tx, m.pos) > (e.after_tx, e.after)
    order by m.tx, m.pos
    limit e.members
  )
  union all
  select null, e.message, e.queue where e.part = 'purged'
) m
join @.queue q on q.n = m.queue
left join lateral @.told_of_death(
  e.pos, case e.part when 'latest' then @.last_death(e.pos) when 'earlier' then @.generation_in(e.doc) end
) f on e.part in ('latest', 'earlier')
where (e.part <> 'success' or e.state = 2)
  and (e.part <> 'deleted' or e.state = 3)
  and (e.part <> 'canceled' or e.state = 4)
  and (e.part <> 'earlier' or e.decision in ('bury', 'hold', 'halt') and @.died_earlier(e.pos, e.ordinal, e.doc));

-- The same for messages with given IDs, read from the messages.
create or replace function @.nixie_job_log(variadic ids uuid[]) returns setof @.nixie_job_log language sql stable as $$
  select
    c.id, c.queue_name, (array['successful', 'deleted', 'canceled'])[c.state - 1], '', null, '',
    to_timestamp(c.ended / 1e9::float8), c.pos
  from @.current c
  where c.pos = any(@.positions_of(ids)) and c.state in (2, 3, 4)
  union all
  select m.id, q.name, 'exception', coalesce(f.type, ''), f.text, coalesce(f.stack, ''), to_timestamp(d.ended / 1e9::float8), d.pos
  from (
    select pos, @.last_death(pos) as generation, died as ended
    from @.letter
    where pos = any(@.positions_of(ids))
    union all
    select pos, @.generation_in(doc), at
    from @.failure
    where pos = any(@.positions_of(ids)) and decision in ('bury', 'hold', 'halt') and @.died_earlier(pos, ordinal, doc)
  ) d
  join @.message m on m.pos = d.pos
  join @.queue q on q.n = m.queue
  left join lateral @.told_of_death(d.pos, d.generation) f on true
  union all
  select p.message, q.name, 'deleted', null, null, null, to_timestamp(p.at / 1e9::float8), null
  from @.purged p
  join @.queue q on q.n = p.queue
  where p.message = any(ids)
$$;
