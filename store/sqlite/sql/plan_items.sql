-- Part: chooses the items of an operation. It orders streams by their first death, and the letters
-- of a stream by rank. Go adds a filter, an order and a limit.
-- in: operation — its number
-- whole: … true order by l.died, l.pos limit ?))
insert into item (operation, ordinal, letter, state, revision, fingerprint)
select :operation, row_number() over (order by first_death, rank, died, pos), pos, 'pending', revision,
  fingerprint
from (
  select pos, died, rank, revision, fingerprint,
    min(died) over (partition by coalesce(stream, -pos)) as first_death
  from (
    select l.pos, l.died, l.rank, l.stream, l.revision, l.fingerprint
    from letter l
    join current c on c.pos = l.pos
    where
