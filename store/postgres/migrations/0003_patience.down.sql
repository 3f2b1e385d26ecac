drop table @.watcher;
alter table @.owner drop column stopping;
alter table @.queue drop column asked;
alter table @.pending drop column patience;
