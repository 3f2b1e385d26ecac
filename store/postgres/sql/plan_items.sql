-- Lists the letters of a filter as items of an operation: by death, those of a stream together.
-- fill: letters — the tables that the filter reads, with l for the letter
-- fill: where — the filter; its arguments are those of this statement, the last is the operation
-- fill: limit — how many at most
-- fill: operation — the argument that has the ID of the operation
-- locks: none
-- out: count
with
  found as materialized (
    select l.pos, l.died, l.rank, l.stream, l.revision, l.fingerprint
    from {letters}
    where {where}
    order by l.died, l.pos
    limit {limit}
  ),
  ordered as (
    select
      pos, died, rank, revision, fingerprint,
      min(died) over (partition by coalesce(stream, -pos)) as first_died,
      min(pos) over (partition by coalesce(stream, -pos)) as lead
    from found
  ),
  put as (
    insert into @.item (operation, ordinal, letter, state, revision, fingerprint)
    select
      o.n, row_number() over (order by first_died, lead, rank, died, t.pos), t.pos, 'pending', revision, fingerprint
    from ordered t, @.operation o
    where o.id = {operation}
    returning 1
  )
select count(*) from put
