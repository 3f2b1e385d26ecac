package policy

import (
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// DefaultProfile is the profile of a [Config] that names none.
const DefaultProfile = "nixie"

// Profile is a set of values and nothing else: the engine is the same for all.
type Profile struct {
	Name  string
	About string // the kind of system whose numbers it has

	Config Config // to be filled up by [New]; max_deliveries follows where it is 0

	// InClaim retries a handler under one claim, before its failure is one that
	// is decided about. The zero value does not.
	InClaim InClaim

	// OnConflict is what a producer of this system means by enqueueing a taken
	// dedupe key.
	OnConflict nixie.Conflict

	// Breaker stops a queue whose messages all fail. The zero value does not.
	Breaker BreakerRules
}

// Profiles lists the names of all profiles.
func Profiles() []string {
	return []string{DefaultProfile, "whizbang", "kafka-dlc", "pgqueuer", "wink", "prodigy"}
}

// ProfileNamed returns a profile; the empty name is the default one. Errors are
// of [nixie.CodeInvalid].
func ProfileNamed(name string) (Profile, error) {
	p := Profile{Name: name, Config: Config{Profile: name, MaxAge: none, RetryBudget: none, MaxCrashes: DefaultMaxCrashes, MaxRedrives: DefaultMaxRedrives, OnExhausted: nixie.Bury}}
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
}

// whizbang: a transactional outbox and inbox. After the nth failure 30 s·2ⁿ, so
// that the first wait is a minute.
func (p *Profile) whizbang() {
	p.About = "outbox and inbox on PostgreSQL"
	p.Config.MaxAttempts = 10
	p.Config.Backoff = Backoff{Base: time.Minute, Factor: 2, Cap: time.Hour, Jitter: JitterNone}
}

// kafkaDLC: the consumer of the dead letter channel pattern. After the nth
// failure 200 ms·2ⁿ up to 10 s, and 20 to 50 ms more. There the jitter comes on
// top of the cap; here the cap stays the longest wait.
func (p *Profile) kafkaDLC() {
	p.About = "consumer with a dead letter channel"
	p.Config.MaxAttempts = 5
	p.Config.Backoff = Backoff{
		Base: 400 * time.Millisecond, Factor: 2, Cap: 10 * time.Second,
		Jitter: JitterAdditive, From: 20 * time.Millisecond, To: 50 * time.Millisecond,
	}
}

// pgqueuer: a job ends with its first failure, after retries within the same
// claim. A job whose worker vanished is picked again; the fourth time counts as
// poison. The durable backoff is that of its database retries and is
// used by those who raise max_attempts.
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

// wink: mailboxes with a visibility timeout. After the nth delivery 60 s·n up to
// 15 min. Its three lists of errors are matched by name, and by the reasons that
// say the same. An error that asks for more visibility is no failure: the handler
// goes on, up to ten times in one attempt.
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
		// What depends on the case goes by the count.
		{MatchName("ProviderError"), nixie.ClassUnknown, nixie.ReasonDependency},
		{MatchName("SerializationError"), nixie.ClassUnknown, nixie.ReasonSerialization},
		{MatchName("ResourceNotFoundError"), nixie.ClassUnknown, nixie.ReasonDependency},
	}
	p.InClaim.Extensions = 10
}

// prodigy: work items of a map and reduce run.
func (p *Profile) prodigy() {
	p.About = "work items of a MapReduce runner"
	p.Config.MaxAttempts = 3
	p.Config.Backoff = Backoff{Base: time.Second, Factor: 2, Cap: 30 * time.Second, Jitter: JitterNone}
	p.Breaker = DefaultBreaker()
}
