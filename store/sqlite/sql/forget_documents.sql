-- Removes documents that have expired.
-- in: now — the time
-- in: limit — how many at most
delete from document
where revision in (
  select revision from document where expires > 0 and expires <= :now limit :limit
)
