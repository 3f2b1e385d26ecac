-- Part: joins the message of stream s that is leased. rowless tells that it has no row.
left join lateral (
  select *
  from (
    (
      select p.pos, false as rowless
      from @.pending p
      where p.stream = s.n and p.stream is not null and p.state = 1
      limit 1
    )
    union all
    (select f.pos, true from ({{first_without_row}}) f where s.has_token and {{is_claimed}})
  ) l
  limit 1
) leased on true
