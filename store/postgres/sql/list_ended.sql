-- Lists the generations of messages that ended, newest first.
-- fill: where — which rows of the log of jobs, as a condition; its arguments are those of this statement
-- fill: limit — how many at most
-- locks: none
-- out: message, key, queue, status, type and text of the failure, moment, position
select
  l.job_id, coalesce(m.key, ''), l.entrypoint, l.status, coalesce(l.exception_type, ''), coalesce(l.exception_message, ''),
  l.created, l.pos
from (
  select * from @.nixie_job_log where {where} order by created desc, pos desc limit {limit}
) l
join @.message m on m.pos = l.pos
order by l.created desc, l.pos desc
