-- Gives the item by which a redrive moved a letter last the letter's new group.
-- in: fingerprint — the new one
-- in: operation — ID of the redrive, or that of none
-- in: letter — its position
-- in: was — the fingerprint that the letter had
update item indexed by item_letter
set fingerprint = :fingerprint
where operation = (select n from operation where id = :operation) and letter = :letter
  and fingerprint = :was
