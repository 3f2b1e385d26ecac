drop table nixie_migration;
