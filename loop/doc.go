// Package loop has typed mailboxes for programs that ask and answer each other.
//
// A [Mailbox] is a queue of a store ([In]) or a channel of a broker ([Over]), with the verbs of a
// visibility timeout: a received [Message] is invisible to others until it is acknowledged, given
// back, or its time is over. A message that names a mailbox for replies can be answered there, any
// number of times until it is acknowledged.
//
// A mailbox is a [worker.Desk] on a source. So the policy of the queue holds here too: a message
// whose receivers vanish again and again, or that was received too often, becomes a letter and is
// not lost. A body that cannot be decoded never gets to a receiver: it becomes a letter with its
// bytes as they are.
package loop
