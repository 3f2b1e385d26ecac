// Package lease has what stores, brokers and workers need to hold deliveries for a handler:
// who watches over a lease, which steps are new, how far the holder is, and how many suspects
// run together. It also names the optional abilities of a [nixie.Source].
//
// Handlers need nothing of it: they use the methods of [nixie.Delivery].
package lease
