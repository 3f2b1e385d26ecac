package policy

// tool says which lines of what a program prints say why it failed. To add one, add a row, and two
// of its outputs to testdata/causes.
type tool struct {
	name string

	// cause matches a line that says why. All patterns begin where the line begins.
	cause string

	// after is the number of lines after a cause that belong to it.
	after int

	// closing matches a line that says only that something failed. It counts if nothing else does.
	closing string

	// noise matches a line that never says why: hints, rulers, progress.
	noise string

	// summary matches a line on standard output that says why. It is for tools that check or test.
	summary string
}

// tools are the known programs. The first has the forms that many share.
var tools = []tool{
	{
		name: "all",
		cause: `\s*(?:[\w.$\\/@-]+(?:::\w+)*[.:\\])?[A-Z]\w*(?:Error|Exception|Interrupt)\b(?: \[\w+\]| \(\w[^)]*\))?(?:: |:?$)|` +
			`[^"'{}]*\b(?i:error|fatal|fatal error|panic|critical)(?:\[\w+\])?: |(?i:error|fatal)[ \]\[]|\[(?i:error|fatal)\]`,
		closing: `\s*(?:\S+: )?(?i:\w*warning)s?\b *[:\]\[]|\(node:\d+\) `,
		noise: `[\s\pP\pS]*$|\s*(?:\S+: )?(?i:hint|note|help|tip|usage|info|debug|see also)\b *[:\]]|` +
			`\s*(?i:usage: )| *\d+%|.*\d% ?(?:\[|\||$)|` +
			`\s*(?i:try|run|see|use|specify) .*(?:--help| -h\b|for more|more information)|\s*\.{3}|\s*\d+ (?:errors?|warnings?)\b.*$|` +
			`\s*…\[\d+ bytes cut\]…$`,
	},
	{
		name: "loggers that write JSON or key=value",
		cause: `\{.*"(?:level|severity|lvl|levelname|log\.level)": ?(?:"(?i:err|error|fatal|panic|critical|alert|emergency)"|[56]0\b)|` +
			`(?:\S+=\S+ )*(?:level|lvl|severity)="?(?i:err|error|fatal|panic|critical)\b`,
		noise: `\{.*"(?:level|severity|lvl|levelname|log\.level)": ?(?:"(?i:trace|debug|info|notice|warn|warning)"|[1234]0\b)|` +
			`(?:\S+=\S+ )*(?:level|lvl|severity)="?(?i:trace|debug|info|notice|warn|warning)\b`,
	},
	{
		name:  "python",
		noise: `Traceback \(most recent|The above exception was|During handling of|\s*File "[^"]+", line \d+|Exception ignored in`,
	},
	{
		name:  "pydantic",
		cause: `.*ValidationError: \d+ validation errors? for \w`,
		after: 2,
	},
	{
		name:  "grpc of python",
		cause: `.*_InactiveRpcError of RPC that terminated with:$`,
		after: 2,
	},
	{
		name:  "node",
		cause: `\s*\[cause\]: `,
		noise: `Node\.js v\d|\(Use \x60node |Emitted 'error' event|node:\S+:\d+$|` +
			`\s*(?:errno|code|syscall|address|port|path|requireStack|hostname): ?`,
	},
	{
		name:  "java",
		cause: `Exception in thread "[^"]*" |Caused by: `,
		noise: `\s*at \S.*(?:[)\]{]|:(?:line )?\d+)$|\s*at \S+$|\s*Suppressed: |Picked up \w+:`,
	},
	{
		name:  "javac",
		noise: `\s*(?:symbol|location): `,
	},
	{
		name:  "go",
		cause: `panic: `,
		noise: `\[signal |exit status \d+$|goroutine \d+ \[|\t\S+\.go:\d+|created by |` +
			`[\w./*()\[\]-]+\((?:0x|\.\.\.|\{|\)$)`,
	},
	{
		name:    "go test",
		closing: `FAIL\b`,
		noise:   `(?:ok|\?) +\t|# `,
		summary: `\s*--- FAIL: |\s+\S+_test\.go:\d+: |panic: `,
	},
	{
		name:  "rust",
		cause: `.*\bpanicked at `,
		after: 1,
		noise: `\s*stack backtrace:|\s+\d+: (?:0x[0-9a-f]+ - )?[\w<{&*]\S*$|\s*= (?:note|help)|\s*--> |` +
			`\s*\d* *\||For more information about|Some errors have detailed`,
	},
	{
		name:    "cargo",
		closing: `error: (?:could not compile|aborting due to|process didn't exit|test failed|\d+ targets? failed)|test result: FAILED`,
		noise:   `\s*(?:Compiling|Finished|Running|Updating|Locking|Checking|Blocking|Caused by:$|Doc-tests) ?`,
	},
	{
		name:  "php",
		cause: `(?:PHP )?(?:Fatal|Parse) error:  ?`,
		noise: `(?:PHP )?Stack trace:|(?:PHP +)?#?\d+[ .] |Next [\w\\]+|\s*thrown in `,
	},
	{
		name:  "ruby",
		cause: `.*\((?:[A-Z]\w*::)*[A-Z]\w*(?:Error|Exception|Interrupt)\)$`,
		noise: `\s*(?:\d+: )?from \S+:\d+:in `,
	},
	{
		name:  "elixir",
		cause: `\*\* \(`,
		noise: `\s+(?:\(\w+ [\w.+-]+\) )?[\w/.-]+\.exs?:\d+: |\s+\(\w+ [\w.+-]+\) `,
	},
	{
		name:  "perl",
		noise: `BEGIN failed--|Execution of .* aborted|Compilation failed in require`,
	},
	{
		name:  "lua",
		noise: `stack traceback:|\t(?:\[C\]|\S+:\d+): in `,
	},
	{
		name:    "tcl",
		closing: `".*"$`,
		noise:   `\s+(?:while executing|invoked from within|\(procedure|\(file)`,
	},
	{
		name:    "gcc",
		closing: `collect2: error: ld returned`,
		noise:   `compilation terminated|[^\s:]+: In function|\s*(?:\d+ )?\| |In file included from`,
	},
	{
		name:    "make",
		closing: `make(?:\[\d+\])?: \*\*\* \[`,
		cause:   `make(?:\[\d+\])?: \*\*\* No rule`,
		noise:   `make(?:\[\d+\])?: (?:Entering|Leaving|Nothing)|make: Target .* not remade`,
	},
	{
		name:    "cmake",
		cause:   `CMake Error`,
		after:   1,
		closing: `-- Configuring incomplete`,
		noise:   `Call Stack|See also "`,
	},
	{
		name:    "ninja",
		closing: `ninja: build stopped`,
		cause:   `ninja: error: `,
		noise:   `FAILED: |\[\d+/\d+\] `,
	},
	{
		name:    "git",
		cause:   `CONFLICT \(| ! \[(?:remote )?rejected\]`,
		closing: `Automatic merge failed|error: failed to push|fatal: Could not read from remote`,
		noise:   `Please make sure you have|and the repository exists|To (?:\S+|\S+:\S+)$|remote: *$|hint: `,
		summary: `CONFLICT \(`,
	},
	{
		name: "npm",
		closing: `npm (?:error|ERR!) (?:code|errno|syscall|path|command|workspace|location|signal) |npm (?:error|ERR!) Lifecycle script|` +
			`npm (?:error|ERR!) (?:Failed at the|Exit status|\S+@\S+ \w+: \x60)`,
		cause: `npm (?:error|ERR!) `,
		noise: `npm (?:error|ERR!)\s*$|npm (?:error|ERR!) (?:A complete log|\s+/|This is (?:probably )?(?:not )?a problem|If you|` +
			`To see a list|Did you mean|  npm |network (?:This|If|'proxy')|For a full|Log files|` +
			`JSON\.parse (?:Failed|Note)|    at |  \w+: |\})|npm notice|> \S+@\S+ `,
	},
	{
		name:    "pip",
		closing: `ERROR: No matching distribution|ERROR: Failed to build|error: (?:subprocess-exited|metadata-generation)`,
		noise:   `\[(?:notice|end of output)|\s*╰|\s*│ exit code|\s*× |WARNING: You are using pip`,
	},
	{
		name:  "psql",
		noise: `\s*Is the server running|LINE \d+: |\s+\^$|(?:STATEMENT|CONTEXT|HINT): `,
	},
	{
		name:    "ssh",
		cause:   `ssh: |\S+: Permission denied \(|Host key verification failed`,
		closing: `(?:scp: )?Connection (?:closed|to \S+ closed)|lost connection|client_loop:`,
		noise:   `Identity file .* not accessible|Warning: `,
	},
	{
		name:    "rsync",
		cause:   `rsync: `,
		closing: `rsync error: `,
	},
	{
		name:  "curl",
		cause: `curl: \(\d+\) `,
		noise: `\s*% Total|\s*Dload|[\s\d:.kMG-]+$|More details here|curl failed to verify|establish a secure|how to fix`,
	},
	{
		name:    "wget",
		cause:   `.*(?:failed: |unable to resolve|ERROR \d{3})`,
		closing: `(?:Retrying|Giving up)\.`,
	},
	{
		name:    "docker",
		cause:   `docker: `,
		closing: `The command '.*' returned a non-zero code`,
	},
	{
		name:    "kubectl",
		closing: `command terminated with exit code`,
		noise:   `[EWI]\d{4} \d\d:\d\d:\d\d`,
	},
	{
		name: "mvn",
		closing: `\[ERROR\] (?:Failed to execute goal|\[Help|For more|To see|Re-run|After correcting|.*-rf|\s*mvn )|` +
			`\[ERROR\]\s*$|\[INFO\] BUILD FAILURE`,
		cause:   `\[(?:ERROR|FATAL)\] `,
		noise:   `\[INFO\]|\[WARNING\]`,
		summary: `\[(?:ERROR|FATAL)\] `,
	},
	{
		name:    "gradle",
		cause:   `Execution failed for task|A problem occurred`,
		after:   1,
		closing: `BUILD FAILED|FAILURE: Build failed|\* What went wrong`,
		noise:   `\* (?:Try|Where|Get more)|> (?:Run with|Get more|Task )|\d+ actionable task`,
	},
	{
		name:    "openssl",
		cause:   `[0-9A-F]{8,}:error:`,
		closing: `Unable to load`,
	},
	{
		name:    "gpg",
		closing: `gpg: decrypt_message failed: Unknown`,
	},
	{
		name:  "unzip",
		cause: `unzip:  cannot find zipfile`,
	},
	{
		name:  "dotnet",
		cause: `Unhandled [Ee]xception`,
	},
	{
		name:    "tar",
		closing: `tar: (?:Error is not recoverable|Exiting with failure|Child returned)`,
	},
	{
		name:    "pytest",
		summary: `(?:FAILED|ERROR) \S+`,
		closing: `=+ .*(?:failed|error).* =+$`,
	},
	{
		name:    "unittest",
		cause:   `AssertionError: `,
		closing: `FAILED \(`,
		noise:   `Ran \d+ tests?`,
	},
	{
		name:    "mocha and node:test",
		summary: `\s+\d+\) \S|\s*not ok \d|✖ .* \(\d.*ms\)$|\s*error: '`,
	},
	{
		name:    "ruff, shellcheck, eslint, tsc",
		summary: `\S+:\d+:\d+: [A-Z]+\d+ |.*\bSC\d{4}\b|\s+\d+:\d+ +error  |.*\berror TS\d+: `,
	},
}
