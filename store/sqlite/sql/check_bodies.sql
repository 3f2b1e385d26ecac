-- Reads all bodies with their hashes, also those that were kept before an edit.
-- out: id, body, hash
select id, body, hash from message
union all
select m.id, o.body, o.hash from original o left join message m on m.pos = o.pos
