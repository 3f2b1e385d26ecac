-- Finds what breaks the rule stream-two-leases: a stream has one message out at a time, and one token.
-- locks: none
-- out: subject, text
select s.name, 'has two messages out at once, or hands out another while one is out'
from @.stream s
{{join_leased}}
where leased.pos is not null
  and (select count(*) from @.pending p where p.stream = s.n and p.state <> 6)
    + (s.has_token and exists ({{first_without_row}}))::int > 1
union all
select
  (select s.name from @.stream s where s.n = t.stream),
  'has a token twice, or one that is not that of its first message'
from (
  select stream, pos from @.valid_token
  union all
  select stream, pos from @.member where stream is not null
) t
group by t.stream
having count(*) > 1
  or min(t.pos) is distinct from (
    select f.pos
    from @.stream s
    cross join lateral ({{first_without_row}}) f
    where s.n = t.stream and s.has_token
  )
