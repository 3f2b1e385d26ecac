-- Lists messages, newest first.
-- fill: where — which messages c, as a condition; its arguments are those of this statement
-- fill: limit — how many at most
-- locks: none
-- out: shown_columns, text of the newest failure
select {{shown_columns}}, {{newest_text}} from @.current c where {where} order by c.pos desc limit {limit}
