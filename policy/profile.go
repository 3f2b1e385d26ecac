package policy

import (
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// DefaultProfile is the profile of a [Config] that names none.
const DefaultProfile = "nixie"

// Profile is a set of values. Profiles differ in nothing else.
type Profile struct {
	Name  string
	About string // the system whose numbers it has

	Config Config // [New] fills in the rest; a max_deliveries of 0 follows from max_attempts

	// InClaim limits the retries of a handler under one claim, before the policy decides about
	// its failure. The zero value has none.
	InClaim InClaim

	// OnConflict tells what happens when a producer enqueues a dedupe key that is taken.
	OnConflict nixie.Conflict

	// Breaker stops a queue whose messages all fail. The zero value never does.
	Breaker BreakerRules
}

// Profiles lists the names of all profiles.
func Profiles() []string {
	return []string{DefaultProfile, "whizbang", "kafka-dlc", "pgqueuer", "wink", "prodigy"}
}

// ProfileNamed returns a profile; the empty name is the default one. Errors have
// [nixie.CodeInvalid].
func ProfileNamed(name string) (Profile, error) {
	p := Profile{Name: name, Config: Config{
		Profile: name, MinAge: none, MaxAge: none, RetryBudget: none, MaxCrashes: DefaultMaxCrashes, MaxRedrives: DefaultMaxRedrives,
		OnExhausted: nixie.Bury,
	}}
	switch name {
	case "", DefaultProfile:
		p.Name, p.Config.Profile = DefaultProfile, DefaultProfile
		p.nixie()
	case "whizbang":
		p.whizbang()
	case "kafka-dlc":
		p.kafkaDLC()
	case "pgqueuer":
		p.pgqueuer()
	case "wink":
		p.wink()
	case "prodigy":
		p.prodigy()
	default:
		return Profile{}, nixie.Errorf(nixie.CodeInvalid, "profile is %q: choose one of %s", name, strings.Join(Profiles(), ", "))
	}
	p.Config.Backoff = p.Config.Backoff.or(defaultBackoff())
	return p, nil
}

func (p *Profile) nixie() {
	p.About = "our own defaults"
	p.Config.MaxAttempts = DefaultMaxAttempts
	p.Config.MinAge = DefaultMinAge
	p.Breaker = DefaultBreaker()
}

// of returns the config of the profile for work whose end a person awaits or not.
func (p Profile) of(awaited bool) Config {
	c := p.Config
	if awaited && c.MinAge != none {
		c.MinAge, c.Awaited = AwaitedMinAge, true
	}
	return c
}

// whizbang has the values of a transactional outbox and inbox. It waits 30 s·2ⁿ after the nth
// failure, so the first wait is a minute.
func (p *Profile) whizbang() {
	p.About = "outbox and inbox on PostgreSQL"
	p.Config.MaxAttempts = 10
	p.Config.Backoff = Backoff{Base: time.Minute, Factor: 2, Cap: time.Hour, Jitter: JitterNone}
}

// kafkaDLC has the values of a consumer with a dead letter channel. It waits 200 ms·2ⁿ after the
// nth failure, at most 10 s, and 20 to 50 ms more. In that system the jitter may exceed the cap;
// here the cap stays the longest wait.
func (p *Profile) kafkaDLC() {
	p.About = "consumer with a dead letter channel"
	p.Config.MaxAttempts = 5
	p.Config.Backoff = Backoff{
		Base: 400 * time.Millisecond, Factor: 2, Cap: 10 * time.Second,
		Jitter: JitterAdditive, From: 20 * time.Millisecond, To: 50 * time.Millisecond,
	}
}

// pgqueuer has the values of a job queue on PostgreSQL. A job ends with its first failure, after
// retries within the same claim. A job whose worker vanished runs again; the fourth time it is
// poison. The backoff, which counts only with a higher max_attempts, is that of its database
// retries.
func (p *Profile) pgqueuer() {
	p.About = "job queue on PostgreSQL"
	p.Config.MaxAttempts = 1
	p.Config.MaxCrashes = 4
	p.Config.Backoff = Backoff{Base: time.Second, Factor: 2, Cap: 5 * time.Minute, Jitter: JitterNone}
	p.InClaim = InClaim{
		MaxAttempts: 5, MaxTime: 2 * time.Minute,
		Backoff: Backoff{
			Base: 100 * time.Millisecond, Factor: 2, Cap: 30 * time.Second,
			Jitter: JitterAdditive, To: 50 * time.Millisecond,
		},
	}
	p.OnConflict = nixie.FailOnConflict
}

// wink has the values of mailboxes with a visibility timeout. It waits 60 s·n after the nth
// delivery, at most 15 min. Its three lists match errors by name, and by the reasons that mean the
// same. An error that asks for more visibility is no failure: the handler goes on, up to ten times
// in one attempt.
func (p *Profile) wink() {
	p.About = "mailboxes of an agent runtime"
	p.Config.MaxAttempts = 5
	p.Config.Backoff = Backoff{Formula: Linear, Base: time.Minute, Step: time.Minute, Cap: 15 * time.Minute, Jitter: JitterNone}
	retriable := MatchName("MailboxConnectionError", "RateLimitError", "TimeoutError")
	final := MatchName("ValidationError", "ContentPolicyViolation", "AuthenticationError", "QuotaExceededError")
	p.Config.NeverDead = []Matcher{retriable, MatchReason(nixie.ReasonTransportUnavailable, nixie.ReasonThrottled, nixie.ReasonTimeout)}
	p.Config.DeadAtOnce = []Matcher{final, MatchReason(nixie.ReasonValidation, nixie.ReasonPolicy, nixie.ReasonAuth)}
	p.Config.ExtendOn = []Matcher{MatchName("VisibilityExpansionRequired")}
	p.Config.ClassRules = []ClassRule{
		{MatchName("MailboxConnectionError"), nixie.ClassTransient, nixie.ReasonTransportUnavailable},
		{MatchName("RateLimitError"), nixie.ClassTransient, nixie.ReasonThrottled},
		{MatchName("TimeoutError"), nixie.ClassTransient, nixie.ReasonTimeout},
		{MatchName("ValidationError"), nixie.ClassPermanent, nixie.ReasonValidation},
		{MatchName("ContentPolicyViolation"), nixie.ClassPermanent, nixie.ReasonPolicy},
		{MatchName("AuthenticationError"), nixie.ClassPermanent, nixie.ReasonAuth},
		{MatchName("QuotaExceededError"), nixie.ClassPermanent, nixie.ReasonResource},
		// These may be transient or permanent, so the number of attempts decides.
		{MatchName("ProviderError"), nixie.ClassUnknown, nixie.ReasonDependency},
		{MatchName("SerializationError"), nixie.ClassUnknown, nixie.ReasonSerialization},
		{MatchName("ResourceNotFoundError"), nixie.ClassUnknown, nixie.ReasonDependency},
	}
	p.InClaim.Extensions = 10
}

// prodigy has the values of the work items of a map and reduce run.
func (p *Profile) prodigy() {
	p.About = "work items of a MapReduce runner"
	p.Config.MaxAttempts = 3
	p.Config.Backoff = Backoff{Base: time.Second, Factor: 2, Cap: 30 * time.Second, Jitter: JitterNone}
	p.Breaker = countingBreaker()
}
