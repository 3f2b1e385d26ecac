drop function @.nixie_outbox(uuid[]), @.nixie_job_log(uuid[]), @.nixie_jobs(uuid[]), @.positions_of(uuid[]);
drop view @.nixie_outbox, @.nixie_job_log, @.nixie_jobs, @.outgoing, @.current, @.history, @.member, @.success, @.fresh, @.follower, @.valid_token, @.entry;
drop table @.meta, @.queue, @.message, @.cursor, @.batch, @.success_range, @.pending, @.progress, @.stream, @.adding, @.token, @.ready, @.log, @.failure, @.attachment, @.letter, @.note, @.original,
  @.dedupe, @.inbox, @.owner, @.operation, @.item, @.audit, @.purged, @.chain, @.counter, @.tally, @.death;
drop sequence @.position;
drop function @.count_letters(), @.facet_of(integer, text, text, text, text, text, text, text, boolean, boolean, integer, integer, integer), @.pos_of(uuid), @.resolve_token(bigint, bigint);
