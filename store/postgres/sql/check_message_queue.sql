-- Finds what breaks the rule message-queue: all that is known of a message names the same queue.
-- locks: none
-- out: subject, text
select m.id::text, 'is in another queue than what is known of it, or in none'
from @.message m
left join @.pending p on p.pos = m.pos
left join @.log l on l.pos = m.pos
where m.queue <> coalesce(p.queue, l.queue) or not exists (select from @.queue q where q.n = m.queue)
