-- Part: the positions of the newest messages.
-- fill: limit — how many at most
select pos from @.message order by pos desc limit {limit}
