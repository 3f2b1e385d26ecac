-- Names the dedupe keys of messages of letters, and given keys in given queues.
-- in: ids — IDs of the letters
-- in: queues — numbers of the queues
-- in: keys — dedupe keys
-- locks: none
-- out: queue, key
select queue, dedupe
from @.message
where pos = any(array({{letters_with}})) and dedupe is not null
union
select q, k from unnest(:queues::int[]) q, unnest(:keys::text[]) k
