-- Lists the migrations that were applied. A schema without hashes has no column for them.
-- locks: none
-- out: version, applied, hash
select m.version, m.applied, coalesce(to_jsonb(m) ->> 'hash', '')
from @.migration m
order by m.version
