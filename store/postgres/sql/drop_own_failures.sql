-- Removes the failures that letters have of their own; keep_own_failures moved them.
-- in: positions — of the letters, which are locked
-- locks: none
-- out: none
update @.letter set ordinal = null, at = null, decision = null, doc = null
where pos = any(:positions) and doc is not null
