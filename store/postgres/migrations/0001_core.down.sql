drop view @.nixie_outbox, @.nixie_job_log, @.nixie_jobs, @.current, @.member, @.fresh, @.follower;
drop table @.meta, @.queue, @.message, @.cursor, @.batch, @.pending, @.stream, @.log, @.failure, @.attachment, @.letter, @.note,
  @.dedupe, @.inbox, @.owner, @.operation, @.item, @.audit, @.chain, @.counter, @.tally;
drop sequence @.place;
