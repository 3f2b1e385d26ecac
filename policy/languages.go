package policy

// language says how stacks of a programming language are read. To add one, add a row, and two of
// its stacks to testdata/stacks.
type language struct {
	name string

	// frame matches the line of a frame. Its groups are func, and file where a function alone does
	// not say which one it is.
	frame string

	// head matches the line that begins the next error of a chain; its group type is optional.
	head string

	// stackAfter says that frames stand before the line with the type, and the newest one last.
	newestLast bool

	// firstCause says that the innermost error of a chain comes first, and not last.
	firstCause bool

	// sameLine says that a function of the runtime has the line of its caller: of the group line.
	sameLine bool

	// callerFile says that a frame has the file of the caller: that of the function is in the line
	// before.
	callerFile bool

	// forget matches the line after which errors count only: those before it did not cause them.
	forget string

	// library matches files and functions that are not the program's own.
	library string

	// weak matches functions that share their name with others: their caller says which one it is.
	weak string
}

// languages are tried in this order: the first whose frames a stack has is the one. Go is not among
// them, see [frames].
var languages = []language{
	{
		name:       "python",
		frame:      `^\s*File "(?P<file>[^"]+)", line \d+, in (?P<func>.+)$`,
		head:       `^(?P<type>[A-Za-z_][\w.]*)(?:: .*)?$`,
		newestLast: true,
		firstCause: true,
		forget:     `^During handling of the above exception`,
		library:    `/(?:site|dist)-packages/|/lib/python\d|^<frozen|\\[Ll]ib\\`,
		weak:       `<(?:lambda|listcomp|genexpr|dictcomp|setcomp)>$`,
	},
	{
		name:  "java", // and Kotlin, Scala
		frame: `^(?:\t| {1,8})at (?:[\w.@-]*/)*(?P<func>[\w.$<>-]+)\((?:[\w$]+\.\w+(?::\d+)?|\w+ [Mm]ethod|Unknown Source|<generated>)\)`,
		head:  `^Caused by: (?P<type>[\w.$]+)`,
		library: `^(?:java|javax|jdk|sun|com\.sun|kotlin|kotlinx|scala|akka|groovy|jakarta|reactor|feign|okhttp3|retrofit2|` +
			`com\.(?:fasterxml|google|mysql|zaxxer|amazonaws|rabbitmq|mongodb)|software\.amazon|` +
			`io\.(?:netty|micrometer|lettuce|grpc|vertx|micronaut|quarkus|confluent)|` +
			`org\.(?:springframework|apache|hibernate|eclipse|junit|postgresql|jboss|quartz|jobrunr|slf4j|h2|glassfish|aspectj))\.|\$\$`,
	},
	{
		name:     "ruby",
		frame:    "^\\s*(?:from |\\d+: from )?(?P<file>(?:[A-Za-z]:)?[^\\s:]+|<internal:[^>]+>):(?P<line>\\d+):in [`'](?P<func>.+?)'",
		head:     "^\\S+:\\d+:in [`'].+?': .*\\((?P<type>[A-Z][\\w:]*)\\)$",
		sameLine: true,
		library:  `/gems/|/lib/ruby/|/vendor/bundle/|^<internal:`,
	},
	{
		name:  "rust", // a line of the file is joined to that of its function
		frame: `^\s*\d+: (?:0x[0-9a-f]+ - )?(?P<func>[\w<{&*].*?)(?: +at (?P<path>\S+?)(?::\d+)*)?$`,
		library: `^<?&?(?:std|core|alloc|tokio|futures\w*|rayon|anyhow|hyper|__rustc|rust_\w+|test|backtrace)\b|` +
			`/rustc/|\.cargo/registry|^<\w+ as (?:core|std|alloc)::`,
	},
	{
		name: "node",
		frame: `^\s*at (?:async )?(?:(?P<func>[^()]+?)(?: \[as [^\]]+\])? \((?P<file>[^()]*?)(?::\d+)*\)|` +
			`(?P<file>\S+?)(?::\d+)+)$`,
		head:    `\[cause\]: (?P<type>[\w.]+)`,
		library: `node_modules[/\\]|^node:|^internal/|^<anonymous>|^native$`,
		weak:    `^\S+$|<anonymous>$`,
	},
	{
		name:    "dotnet",
		frame:   `^\s*at (?P<func>[\w.<>$|+\x60,&\[\]]+?) ?(?:\[[\w, ]+\] ?)?\(.*\)(?: in .*| \[0x[0-9a-f]+\].*)?$`,
		head:    `---> (?:\(Inner Exception #\d+\) )?(?P<type>[\w.+\x60]+)`,
		library: `^(?:System|Microsoft|MassTransit|Hangfire|Newtonsoft|Npgsql|RabbitMQ|Quartz|Polly|Dapper|MySql|StackExchange)\.`,
	},
	{
		name:       "php",
		frame:      `^#\d+ (?:\{main\}|(?P<path>[^(:]+?)(?:\(\d+\))?: (?P<func>[^()]+)\()`,
		head:       `^Next (?P<type>[\w\\]+)`,
		firstCause: true,
		callerFile: true,
		library: `/vendor/|^\[internal|^(?:Illuminate|Symfony|Laravel|Doctrine|GuzzleHttp|Monolog|PHPUnit|Composer)\\|` +
			`^(?:array|call_user)_\w+$`,
		weak: `^\w+$|\{closure\}$`,
	},
	{
		name:  "elixir",
		frame: `^\s+(?:\((?P<path>\w+) [\w.+-]+\) )?(?:(?:[\w/.-]+:\d+: )(?P<func>anonymous .*|[^\s(][^(]*)|(?P<func>:\w+\.\w+[(/].*))`,
		library: `^(?:elixir|stdlib|kernel|ex_unit|mix|ecto\w*|phoenix\w*|plug\w*|oban\w*|broadway\w*|jason|db_connection|postgrex|myxql|` +
			`mint|finch|tesla|req|hackney|telemetry|gen_stage|nimble_\w+|ssl|ranch|cowboy|bandit)$|^:`,
	},
	{
		name:       "perl", // as Carp writes it
		frame:      `^\t(?P<func>[\w:]+)(?:\(.*\))? called at (?P<path>\S+) line \d+$`,
		callerFile: true,
		library:    `/usr/(?:share|lib)/|/perl5/|^(?:Carp|DBI|DBIx|Minion|Mojo|Moose|Plack|Try::Tiny)::`,
		weak:       `::__ANON__$`,
	},
}
