-- Moves the beginning of the ordered path of streams behind messages that left it.
-- in: streams — numbers of the streams, which are locked
-- in: positions — one of each stream
-- locks: none
-- out: none
update @.stream s set at = greatest(s.at, u.pos), has_token = false
from unnest(:streams::bigint[], :positions::bigint[]) u (n, pos)
where s.n = u.n and s.n = any(:streams)
