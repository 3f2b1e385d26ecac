-- Marks items of an operation as done.
-- in: operation — its number
-- in: positions — of the letters, as JSON
update item indexed by item_letter
set state = 'done'
where operation = :operation and letter in (select value from json_each(:positions))
