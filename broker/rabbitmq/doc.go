// Package rabbitmq is the driver for quorum queues of RabbitMQ. It also takes dead letters out of
// queues, and sends records to queues.
//
// A [Driver] gives nothing back but by leaving, since an older server counts each delivery.
// A [Reader] takes messages, and removes each when it is done. It never looks at a message and puts
// it back: a quorum queue counts that as a delivery, and drops a message that has reached its
// limit. A [Publisher] sends with confirms. docs/rabbitmq.md says what is promised.
package rabbitmq
