// Package testservers finds the servers that tests can use on this machine:
// PostgreSQL, Redis, RabbitMQ and Kafka, and the C compiler that the race
// detector needs. It starts nothing. NATS is a library and needs no finding.
//
// A server of your own is named by its variable, NIXIE_TEST_POSTGRES and so on,
// and then nothing is looked for. The script install beside this file installs
// what is missing; `make test-servers` runs it.
package testservers
