// Package testservers finds the servers that tests can use on this machine:
// PostgreSQL, Redis, RabbitMQ and Kafka, the browser Chromium with axe-core, and the C compiler
// that the race detector needs. NATS is a library and needs no finding.
//
// Of each server it starts one for the tests of a process, private and gone with it. A
// server of your own is named by its variable, NIXIE_TEST_POSTGRES and so on, and then nothing is
// looked for or started. NIXIE_TEST_POSTGRES_MAJOR, 13 or 18 for example, takes another version of
// PostgreSQL than the distribution has. The script install, next to this file, installs what is
// missing; `make test-servers` runs it.
package testservers
