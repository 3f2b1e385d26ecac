-- Part: joins the message of stream s that goes next if nothing holds it up. rowless tells that it
-- has no row.
left join lateral (
  select *
  from (
    (
      select p.pos, p.due, p.rank, false as rowless
      from @.pending p
      where s.strict and p.stream = s.n
      order by p.rank
      limit 1
    )
    union all
    (
      select p.pos, p.due, p.rank, false
      from @.pending p
      where not s.strict and p.stream = s.n
      order by p.due, p.rank
      limit 1
    )
    union all
    (select f.pos, f.enqueued, f.pos, true from ({{first_without_row}}) f)
  ) f
  order by f.rank
  limit 1
) first on true
