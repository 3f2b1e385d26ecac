-- Finds what breaks the rule stream-order: no message may be claimed before those that it has to wait for.
-- locks: none
-- out: subject, text
select s.name, 'hands out a message that has to wait'
from (select s.*, q.strict from @.stream s join @.queue q on q.n = s.queue) s
{{join_first}}
where exists (
    select
    from @.pending p
    where p.stream = s.n
      and p.state = 0
      and not p.may_pass
      and (p.pos <> first.pos or {{is_held_up}})
  )
  or first.rowless and s.has_token and {{is_held_up}}
