-- Deletes the rows of 32 messages. The first three arguments are not used.
delete from pending where pos in {{positions}}
