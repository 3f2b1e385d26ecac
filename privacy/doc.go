// Package privacy hides secrets in the texts that failures are recorded by.
//
// A [Mask] is a list of rules. It is given to a worker or a desk by option and
// applied where the failure is made, so that neither store nor observer, log or
// screen ever sees what it hides:
//
//	mask := privacy.Mask{privacy.Secrets, privacy.Pattern(regexp.MustCompile(`cust-\d{6}`))}
//	worker.New(worker.Config{Mask: mask.Failure, …})
//
// A queue whose worker has no mask keeps its texts as they are. Nothing is
// spent on a message that succeeds.
//
// What is hidden is replaced by [Hidden], always the same, so that failures of
// one cause stay one group whatever the secret was. The name of a secret, the
// scheme of a header and the prefix of a token stay, to be recognised by.
//
// # What Secrets knows
//
//   - pairs of a telling name and a value, in the forms of environment, query
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
// A secret without a name, form or prefix is not recognised: give it to
// [Values]. Words after "password: " in the middle of a sentence are hidden
// only when they look random, because most of such words explain an error. The
// bodies of messages are not touched.
package privacy
