package loop

import (
	"context"

	"github.com/nixie-go/nixie"
)

// Target takes replies. An [Outlet] is one, and so is a [Mailbox].
type Target interface {
	Name() string
	Put(ctx context.Context, body any, opts ...nixie.Option) (nixie.ID, error)
}

// Resolver finds mailboxes by name: first in the registry, then by the factory. Both may be nil.
type Resolver struct {
	Registry map[string]Target
	Factory  func(name string) (Target, error)
}

// Resolve returns a mailbox. A name that neither registry nor factory knows is [ErrResolution].
func (r *Resolver) Resolve(name string) (Target, error) {
	if t := r.Registry[name]; t != nil {
		return t, nil
	}
	if r.Factory == nil {
		return nil, fail(ErrResolution, nixie.CodeNotFound, "mailbox %q is not in the registry, and there is no factory: add it", name)
	}
	t, err := r.Factory(name)
	if err != nil {
		return nil, fail(ErrResolution, nixie.CodeNotFound, "factory makes no mailbox %q: %w", name, err)
	}
	return t, nil
}

// ResolveOptional returns a mailbox, or nil if it cannot be resolved.
func (r *Resolver) ResolveOptional(name string) Target {
	t, err := r.Resolve(name)
	if err != nil {
		return nil
	}
	return t
}
