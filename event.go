package nixie

// Events lists every event once, as the audit may name them.
func Events() []Event {
	return []Event{
		OnEnqueue, OnClaim, OnComplete, OnRetry, OnRelease, OnDiscard, OnBury, OnAbandon, OnCancel, OnRedrive, OnHold, OnUnhold,
		OnSuccess, OnDieAgain, OnExceed, OnConfirm, OnRequalify, OnRestore, OnConfigure, OnAmend, OnUnblock, OnPurge, OnGone,
	}
}
