-- The last six digits of the IDs of letters: people type the end of an ID.
create index letter_ending on @.letter (right(id::text, 6)) where not numbered;
