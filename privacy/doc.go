// Package privacy hides secrets in the texts of failures.
//
// A [Mask] is a list of rules. A worker or a desk gets it in its config and applies it when it
// makes a failure. So no store, observer, log or screen ever sees the secrets:
//
//	mask := privacy.Mask{privacy.Secrets, privacy.Pattern(regexp.MustCompile(`cust-\d{6}`))}
//	worker.New(worker.Config{Mask: mask.Failure, …})
//
// A worker without a mask changes no text. A message that succeeds costs nothing.
//
// A mask replaces every secret by the same text, [Hidden], so that failures of one cause stay one
// group. The name of a secret, the scheme of a header and the prefix of a token stay, so that
// people recognise them.
//
// # What Secrets knows
//
//   - pairs of a secret's name and a value, in the forms of environment, query
//     string, JSON (escaped or not), YAML, Go maps and structs, connection
//     strings and headers: a name that ends in password, passwd, passphrase,
//     secret, token, api key, access key, private key and the like
//   - Authorization and Cookie headers, Bearer and Basic credentials anywhere
//   - options of a command line: --password VALUE, --token=VALUE, -u USER:PASSWORD
//   - passwords in URLs and in user:password@tcp(…)
//   - tokens with a known beginning (AWS, GitHub, GitLab, Slack, Stripe, Google,
//     OpenAI, npm, PyPI, Vault …), JSON web tokens, webhooks of chat systems
//   - private keys in PEM
//
// # What it cannot know
//
// Secrets does not recognise a secret without a name, form or prefix: give it to [Values]. It hides
// words after "password: " in the middle of a sentence only if they look random, because most such
// words explain an error. It does not change the bodies of messages.
package privacy
