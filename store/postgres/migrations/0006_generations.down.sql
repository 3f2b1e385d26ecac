create or replace view @.nixie_job_log as
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

create or replace function @.nixie_job_log(variadic ids uuid[]) returns setof @.nixie_job_log language sql stable as $$
  select * from @.nixie_job_log where pos = any(@.positions_of(ids))
  union all
  select p.message, q.name, 'deleted', null, null, null, to_timestamp(p.at / 1e9), null
  from @.purged p
  join @.queue q on q.n = p.queue
  where p.message = any(ids)
$$;

drop function @.told_of_death(bigint, bigint), @.died_earlier(bigint, bigint, text), @.generation_in(text), @.last_death(bigint);
drop index @.log_succeeded_at, @.log_discarded_at, @.log_canceled_at, @.success_range_at, @.letter_died_at, @.failure_death_at, @.purged_at;
