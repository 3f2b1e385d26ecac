-- Marks items of a redrive whose letters a broker took.
-- in: at — now
-- in: operation — its number
-- in: positions — of the letters, as JSON
update item indexed by item_letter
set state = iif(early <> '', early, 'unobserved'), at = :at
where operation = :operation and letter in (select value from json_each(:positions))
