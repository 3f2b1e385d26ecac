drop function @.nixie_outbox(uuid[]), @.nixie_job_log(uuid[]), @.nixie_jobs(uuid[]), @.places_of(uuid[]);
drop view @.nixie_outbox, @.nixie_job_log, @.nixie_jobs, @.outgoing, @.current, @.history, @.member, @.success, @.fresh, @.follower, @.turned, @.entry;
drop table @.meta, @.queue, @.message, @.cursor, @.batch, @.span, @.pending, @.stage, @.stream, @.adding, @.turn, @.ready, @.log, @.failure, @.attachment, @.letter, @.note, @.original,
  @.dedupe, @.inbox, @.owner, @.operation, @.item, @.audit, @.purged, @.chain, @.counter, @.tally, @.death;
drop sequence @.place;
drop function @.count_letters(), @.kind_of(integer, text, text, text, text, text, text, text, boolean, boolean, integer, integer, integer), @.pos_of(uuid), @.found(bigint, bigint);
