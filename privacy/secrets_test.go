package privacy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// secretTexts are texts with a secret. Tests replace a mark in braces by a secret of its alphabet.
var secretTexts = []string{
	// environment, connection strings, query strings, command lines
	"PASSWORD={p}", "export DB_PASSWORD={p} && ./run", "API_TOKEN={p} ./deploy", "env: HOME=/srv SECRET_KEY={p} LANG=C",
	"host=db user=app password={p} dbname=orders", "Server=db;User Id=app;Password={p};Encrypt=true", "DB_PASS={p}", "pwd={p};uid=sa",
	"AccountName=x;AccountKey={p}==;EndpointSuffix=core.windows.net", "GET /v1?api_key={p}&user=bob 500", "https://x.example/cb?token={p}",
	"https://x.example/blob?se=2030&sig={p}&sp=r", "X-Amz-Signature={p}&X-Amz-Date=1", "run --password={p} --verbose",
	"run --password {p} --verbose",
	"exec [tool --api-key {p} -v]: exit 1", `exec ["tool", "--token", "{p}"]: exit 1`, "curl -u bob:{p} https://x.example",
	"mysqldump --password '{q}' db",
	"aws_secret_access_key = {p}", "client_secret={p},client_id=7", "login(user=bob, password={p})", "secret := \"{q}\"",
	// JSON, YAML, code, SQL
	`{"password":"{q}","user":"bob"}`, `{"user": "bob", "apiKey": "{q}"}`, `{"auth":{"clientSecret" : "{q}"}}`, `{"token":{n}}`,
	`body "{\"refresh_token\":\"{q}\"}" refused`, `"{\\\"password\\\":\\\"{q}\\\"}"`, "user: bob\npassword: {p}\nport: 1",
	"  db:\n    passwd: '{q}'\n",
	"- secret: \"{q}\"", "password: |\n  {p}\n  {p}\nport: 1", "{user: bob, password: {p}}",
	"{password: {p}, user: bob}", "login(password: {p}; user: bob)", "[user: bob, token: {p}]", "config['password'] = '{q}'",
	`:password => "{q}",`,
	"CREATE USER bob IDENTIFIED BY '{q}'", "ALTER ROLE bob PASSWORD '{q}'", "map[password:{p} user:bob]",
	"{User:bob Password:{p} Age:3}", `&{Token:"{q}" N:1}`,
	"'password': b'{q}'", "<input name=\"x\" password='{q}'>", "passphrase=\"{q}", `{"secrets":{"session_id":"{q}"}}`,
	// headers
	"Authorization: Bearer {p}", "authorization: basic {p}", "> Authorization: Token {p}",
	"with header Authorization: Bearer a1{p} was refused",
	`{"Authorization":"Bearer {p}"}`, `map[Authorization:[Bearer {p}] Accept:[*/*]]`,
	`curl -H 'Authorization: Digest username="bob", response="{p}"' x`,
	"Authorization: AWS4-HMAC-SHA256 Credential=x/20260101/s3, Signature={p}", "Proxy-Authorization: Basic {p}", "X-Api-Key: {p}",
	"x-auth-token: {p}",
	"Cookie: sid={p}; theme=dark", "Set-Cookie: id={p}; Path=/; HttpOnly", `{"cookie": "a={p}; b={p}"}`, "request had Bearer Aa1{p}",
	"got Basic Aa1{p}=",
	// URLs
	"postgres://app:{p}@db:5432/x: refused", "dial mongodb+srv://a:{p}@h1,h2/db", "redis://:{p}@cache:6379", "amqp://u:{p}%2F{p}@mq",
	"postgres://u:{p}/{p}@db/x",
	"app:{p}@tcp(db:3306)/x", "https://Aa1{p}Aa1{p}@git.example/r.git", "https://hooks.slack.com/services/T1/B1/{p}",
	"https://discord.com/api/webhooks/1/{p}",
	// sentences
	"wrong password: a1{p}", "bad API key: a1{p}.", `cannot log in with password "{q}"`, "token:{p}",
	"vault answered secret: Aa1{p}, try again",
	// tokens
	"AKIA{U}", "key ASIA{U} denied", "ghp_{t}", "github_pat_{t}", "glpat-{t}", "xoxb-{t}", "sk_live_{t}", "rk_test_{t}", "whsec_{t}",
	"AIza{t}",
	"GOCSPX-{t}", "ya29.{t}", "sk-proj-Aa1{t}", "npm_{t}", "pypi-{t}{t}", "hf_Aa1{t}", "hvs.{t}", "SG.Aa1{t}.{t}", "shpat_{t}",
	"dop_v1_{t}", `failed:\nghp_{t}`,
	"eyJ{t}.eyJ{t}.{t}", "id eyJ{t}.{t}. done",
	"-----BEGIN RSA PRIVATE KEY-----\n{t}\n{t}\n-----END RSA PRIVATE KEY-----",
	`-----BEGIN PRIVATE KEY-----\n{t}\n-----END PRIVATE KEY-----\n`,
	"-----BEGIN OPENSSH PRIVATE KEY-----\n{t}\n{t}", "{t}\n{t}\n-----END EC PRIVATE KEY-----",
	"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{t}\n-----END PGP PRIVATE KEY BLOCK-----",
}

// alphabets has a pattern for the secrets of each mark in secretTexts.
var alphabets = map[string]string{
	"{p}": `[A-Za-z0-9_.~+][A-Za-z0-9_.~+-]{4,30}[A-Za-z0-9]`,
	"{q}": `[A-Za-z0-9 _.,;:!?@#$%^&*()\[\]{}<>|/~+=-]{5,30}[A-Za-z0-9]`,
	"{n}": `[1-9][0-9]{7,20}`,
	"{t}": `[A-Za-z0-9]{36,60}`,
	"{U}": `[A-Z0-9]{16}`,
}

// A masked text has no four bytes of its secrets, unless the rest of the text has them too.
func TestSecretsAreHidden(t *testing.T) {
	for _, template := range secretTexts {
		t.Run(template, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				text, without := template, template
				var secrets []string
				for mark, alphabet := range alphabets {
					for strings.Contains(text, mark) {
						secret := rapid.StringMatching(alphabet).Filter(notAState).Filter(func(s string) bool {
							return mark == "{n}" || !numeric(s) // short names such as pwd keep plain numbers, as in "pass=12 fail=0"
						}).Draw(t, "secret")
						secrets = append(secrets, secret)
						text = strings.Replace(text, mark, secret, 1)
					}
					without = strings.ReplaceAll(without, mark, Hidden)
				}
				masked := Secrets(text)
				for _, secret := range secrets {
					for i := range len(secret) - 3 {
						if part := secret[i : i+4]; strings.Contains(masked, part) && !strings.Contains(without, part) {
							t.Fatalf("%q of the secret %q is left:\n%s\n%s", part, secret, text, masked)
						}
					}
				}
				if again := Secrets(masked); again != masked {
					t.Fatalf("hiding twice changes it:\n%s\n%s\n%s", text, masked, again)
				}
			})
		})
	}
}

// notAState leaves out words that describe a secret.
func notAState(secret string) bool { return !stateWord(secret) && !harmlessValue(secret) }

// A text with another secret gives the same masked text, so groups stay together.
func TestMaskedTextsAreTheSame(t *testing.T) {
	for _, template := range secretTexts {
		var seen []string
		for _, secret := range []string{"aB3dE5gH7jK9mN1pQ3sT5vW7xY9zA1cD3fG5hJ7k", "Zy9xW8vU7tS6rQ5pO4nM3lK2jI1hG0fE9dC8bA7z"} {
			text := template
			for mark := range alphabets {
				value := secret
				switch mark {
				case "{U}":
					value = strings.ToUpper(secret[:16])
				case "{n}":
					value = fmt.Sprintf("%d", 100000000+len(seen))
				}
				text = strings.ReplaceAll(text, mark, value)
			}
			seen = append(seen, Secrets(text))
		}
		if seen[0] != seen[1] {
			t.Errorf("%s:\n%s\n%s", template, seen[0], seen[1])
		}
	}
}

// Text that is no secret stays, because most names and words explain a failure.
func TestNearMissesStay(t *testing.T) {
	for _, text := range []string{
		"", "exit status 1", "connect to db-2: refused", "open /etc/passwd: permission denied", "password is required", "invalid token",
		`token "abc" expired`,
		"get token: context deadline exceeded", "token: context deadline exceeded", "token: expired", "password: required",
		`"token": null`, "token=true",
		"unexpected token: '<'", `Unexpected token '<', "<!DOCTYPE "... is not valid JSON`, "syntax error near unexpected token: `newline'",
		"token_type: bearer", "max_tokens: 4096, total_tokens=15", `{"completion_tokens": 12}`, "password_file=/run/x",
		"secretName: db", "PASSWORD_HASHER=argon2id",
		"primary_key=12 sort_key=abc cache_key=x key=abc", "idempotency-key: 7f3a", "request-id: r-1", "public_key=ssh-ed25519",
		"tokenizer: cl100k",
		"author: Ann", "passenger=3", "secretary: Ann", "keyboard=us", "monkey=1", "pass=12 fail=3", "PASS: 12", "bypass=always",
		"compass: north",
		"PWD=/srv/x", "OLDPWD=/srv", `"pwd":"/srv/app"`, "if password == input", "token != want", "use --token to log in",
		"flag not defined: --password",
		"docker run -u 1000:1000 x", "ssh -u git@host", "std::token::kind", "Token::new", "main.(*Token).Get(0x1400)",
		"goroutine 1 [running]:",
		"https://x.example/a?b=c#d", "http://host:8080/path/@user", "https://host.example:443/@scope/pkg", "ssh://git@github.com/x",
		"postgres://app@db/x",
		"mailto:a@b.example", "a@b.example", "//registry:5000/x@sha256:abc", "git@github.com:x/y.git", "time 12:30:45", "user:group",
		"f@x(1)",
		"Basic Authentication is off", "bearer authentication failed", "basic understanding", "Bearer token missing",
		"Authorization: token has expired, log in again",
		"authorization: denied by policy", "no cookie: named session", "cookie: not found", "skipped sk-learn-a-long-name-of-a-thing",
		"ghp_short", "eyJhbG", "eyJ.x.y",
		"AKIA is a prefix", "xoxb-", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
		"-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
		"da39a3ee5e6b4b0d3255bfef95601890afd80709", "0197c9a0-ac96-774b-bcce-b302099a8057", "password=$DB_PASSWORD",
		"password=${DB_PASSWORD}", "4111 1111 1111 1111",
		"日本語のテキスト: 失敗", "token: oauth2: cannot fetch", "secret: open /run/x: no such file", "credentials: https://x.example/docs",
		"\xff\xfe token",
	} {
		if got := Secrets(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// Enough of the text stays to tell which secret it was.
func TestShapeStays(t *testing.T) {
	for _, c := range [...][2]string{
		{`{"password": "hun\"ter2", "user": "bob"}`, `{"password": "***", "user": "bob"}`},
		{"Password=it's4me;Encrypt=true", "Password=***;Encrypt=true"},
		{"password='it''s4me', user='bob'", "password='***', user='bob'"},
		{"postgres://app:p/w@rd@db:5432/x", "postgres://app:***@db:5432/x"},
		{"token ghp_0123456789abcdefghijABCDEFGHIJ012345 of bob", "token ghp_*** of bob"},
		{"token ghp_012345…", "token ghp_***…"},
		{"Authorization: Bearer abcDEF12", "Authorization: Bearer ***"},
		{"remote: https://ghp_abcdefghijklmnopqrstuvwxyz0123456789@github.com/x", "remote: https://***@github.com/x"},
		{"(token=abc)", "(token=***)"},
		{"password:hunter2, user:bob", "password:***, user:bob"},
	} {
		if got := Secrets(c[0]); got != c[1] {
			t.Errorf("%s\n got %s\nwant %s", c[0], got, c[1])
		}
	}
}

// Twice the text takes twice the time, for any text.
func TestSecretsTakeLinearTime(t *testing.T) {
	if testing.Short() {
		t.Skip("measures")
	}
	for _, piece := range []string{
		"password=", "password: ", `password="`, `password=\"`, "token: a b ", "{token: a b ", "://", "a://b:c", "authorization: x ",
		"cookie: a ", "sk-", "eyJ-", "eyJaaaaaaaa.",
		"-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "-----BEGIN ", "--password ", `--token "`, "a:b@c(", " ", "-", "\\",
		"\"", "pwd=\"/", "pass=[/ ", "password ",
		"${", "password=${", "Bearer a-", "identified by '", "password: |\n ", "token=[", "'", "authorization: digest ", "d \"",
	} {
		small, large := strings.Repeat(piece, (16<<10)/len(piece)), strings.Repeat(piece, (256<<10)/len(piece))
		s, l := time.Hour, time.Hour
		slow := func() bool { return l > 100*s && l > 50*time.Millisecond }
		for tries := 0; tries == 0 || slow() && tries < 30; tries++ { // what else the machine does only adds to a time
			s, l = min(s, duration(small)), min(l, duration(large))
		}
		if slow() {
			t.Errorf("%q: %s for 16 KiB, %s for 256 KiB", piece, s, l)
		}
	}
}

func duration(text string) time.Duration {
	began := time.Now()
	Secrets(text)
	return time.Since(began)
}

func FuzzSecrets(f *testing.F) {
	for _, template := range secretTexts {
		f.Add(strings.NewReplacer("{p}", "hunter2-x", "{q}", "hun ter2", "{n}", "12345678", "{U}", "IOSFODNN7EXAMPLE").Replace(
			strings.ReplaceAll(template, "{t}", "aB3dE5gH7jK9mN1pQ3sT5vW7xY9zA1cD3fG5hJ7k")))
	}
	f.Fuzz(func(t *testing.T, text string) {
		masked := Secrets(text)
		if len(masked) > len(Hidden)*len(text) {
			t.Errorf("%d bytes became %d", len(text), len(masked))
		}
		if again := Secrets(masked); again != masked {
			t.Errorf("hiding twice changes it:\n%q\n%q\n%q", text, masked, again)
		}
		if Cards(Cards(text)) != Cards(text) {
			t.Errorf("hiding cards twice changes %q", text)
		}
	})
}

func BenchmarkSecrets(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"line", "connect to db-2: refused"},
		{"line with a secret", "dial postgres://app:hunter2@db:5432/orders?sslmode=disable: connection refused"},
		{"16 KiB of log", strings.Repeat("2026-05-04T12:00:00Z INFO worker: handled message id=0197c9a0 queue=orders took=12ms\n",
			195)[:16<<10]},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			for b.Loop() {
				Secrets(c.text)
			}
		})
	}
}

func TestEveryPrefixIsFound(t *testing.T) {
	for _, p := range prefixes {
		if got := Secrets(p.text + strings.Repeat("A3b", 20)); got != p.text+Hidden {
			t.Errorf("%s: %q", p.text, got)
		}
	}
}
