package policy

import "github.com/nixie-go/nixie"

// foreign says what errors of other programs and languages mean. Of several rows that a text has,
// the first one counts. To add a row or a phrase, add a line to the test as well.
//
// Said has phrases in lower case, with bars between: names of types, codes and words. They are
// whole words of a text, and an asterisk is any one word. After an asterisk stands a part of the
// name of a type, for libraries beyond this list.
var foreign = []struct {
	tool   string
	reason nixie.Reason
	said   string
}{
	// That a worker vanished is certain only in the words of the job queue itself.
	{"rq", nixie.ReasonLeaseExpired, "work-horse terminated unexpectedly|work-horse process was terminated unexpectedly|abandonedjoberror"},
	{"celery", nixie.ReasonLeaseExpired, "workerlosterror|worker exited prematurely"},
	{"asynq", nixie.ReasonLeaseExpired, "asynq: task lease expired"},
	{"bullmq", nixie.ReasonLeaseExpired, "job stalled more than allowable limit|job stalled more than maxstalledcount"},
	{"celery", nixie.ReasonUnknownType, "notregistered|received unregistered task"},
	{"dramatiq", nixie.ReasonUnknownType, "actornotfound"},
	{"asynq", nixie.ReasonUnknownType, "handler not found for task"},
	{"sidekiq", nixie.ReasonUnknownType, "uninitialized constant"},
	{"rq", nixie.ReasonUnknownType, "invalid attribute name"},
	{"asynq", nixie.ReasonPanic, "panic error cause by|panic ["},
	{"celery", nixie.ReasonCanceled, "taskrevokederror"},
	{"sidekiq", nixie.ReasonCanceled, "sidekiq::shutdown"},
	{"dramatiq", nixie.ReasonCanceled, "dramatiq.middleware.shutdown.shutdown"},
	{"rq", nixie.ReasonCanceled, "shutdownimminentexception"},

	{"redis", nixie.ReasonAuth, "noauth authentication required|wrongpass invalid username-password pair|noperm this user"},
	{"psql", nixie.ReasonAuth, "password authentication failed for user|no pg_hba.conf entry for|permission denied for"},
	{"mysql", nixie.ReasonAuth, "access denied for user"},
	{"kafka", nixie.ReasonAuth, "topicauthorizationexception|saslauthenticationexception"},

	{"curl", nixie.ReasonTimeout, "operation timed out|timeout was reached"},
	{"psql", nixie.ReasonTimeout, "canceling statement due to statement timeout|canceling statement due to lock timeout"},
	{"mysql", nixie.ReasonTimeout, "lock wait timeout exceeded"},
	{"node", nixie.ReasonTimeout, "esockettimedout|aborted due to timeout|timeout of * exceeded|und_err_connect_timeout|" +
		"und_err_headers_timeout|und_err_body_timeout|timeout acquiring a connection"},
	{"go", nixie.ReasonTimeout, "i/o timeout|tls handshake timeout|context deadline exceeded|client.timeout exceeded"},
	{"python", nixie.ReasonTimeout, "timeouterror|timeoutexpired|readtimeout|connecttimeout|writetimeout|pooltimeout|readtimeouterror|" +
		"connecttimeouterror"},
	{"celery", nixie.ReasonTimeout, "timelimitexceeded|softtimelimitexceeded"},
	{"rq", nixie.ReasonTimeout, "jobtimeoutexception|task exceeded maximum timeout value"},
	{"ruby", nixie.ReasonTimeout, "net::readtimeout|net::opentimeout|net::writetimeout|timeout::error|execution expired"},
	{"java", nixie.ReasonTimeout, "sockettimeoutexception|httptimeoutexception|httpconnecttimeoutexception|connecttimeoutexception|" +
		"connectiontimeoutexception|java.util.concurrent.timeoutexception|deadline_exceeded|read timed out|connect timed out"},
	{"dotnet", nixie.ReasonTimeout, "system.timeoutexception|configured httpclient.timeout"},
	{"http", nixie.ReasonTimeout, "504 gateway timeout|gateway time-out|gateway timeout|status code 504|error: 504"},
	{"libc", nixie.ReasonTimeout, "connection timed out|timed out|timeout expired|etimedout"},
	{"any", nixie.ReasonTimeout, "*timeout|*timedout|*deadlineexceeded|*timelimitexceeded"},

	{"http", nixie.ReasonThrottled, "too many requests|status code 429|error: 429|rate limit exceeded|rate limit reached|" +
		"throttlingexception|resource_exhausted"},
	{"any", nixie.ReasonThrottled, "*ratelimit|*throttl|*toomanyrequests|*overlimit"},

	{"psql", nixie.ReasonDependency, "database system is starting up|database system is shutting down|" +
		"database system is in recovery mode|terminating connection due to administrator command|deadlock detected|" +
		"could not serialize access"},
	{"mysql", nixie.ReasonDependency, "deadlock found when trying to get lock|server shutdown in progress"},
	{"redis", nixie.ReasonDependency, "loading redis is loading|busyloadingerror|clusterdown|masterdown link|readonly you can't write"},
	{"http", nixie.ReasonDependency, "service unavailable|service temporarily unavailable|bad gateway|status code 502|status code 503|" +
		"error: 502|error: 503"},

	{"psql", nixie.ReasonResource, "sorry, too many clients|remaining connection slots"},
	{"mysql", nixie.ReasonResource, "too many connections"},
	{"redis", nixie.ReasonResource, "oom command not allowed|max number of clients reached"},
	{"java", nixie.ReasonResource, "outofmemoryerror"},
	{"dotnet", nixie.ReasonResource, "outofmemoryexception|there is not enough space on the disk"},
	{"python", nixie.ReasonResource, "memoryerror"},
	{"ruby", nixie.ReasonResource, "nomemoryerror"},
	{"node", nixie.ReasonResource, "javascript heap out of memory"},
	{"libc", nixie.ReasonResource, "no space left on device|cannot allocate memory|too many open files|disk quota exceeded|" +
		"resource temporarily unavailable|no buffer space available|enospc|enomem|emfile|enfile|edquot|enobufs"},

	{"psql", nixie.ReasonTransportUnavailable, "server closed the connection unexpectedly|could not translate host name|" +
		"could not connect to server"},
	{"mysql", nixie.ReasonTransportUnavailable, "can't connect to mysql server|lost connection to mysql server|server has gone away"},
	{"curl", nixie.ReasonTransportUnavailable, "could not resolve host|couldn't connect to server|empty reply from server|recv failure|" +
		"send failure|ssl_error_syscall"},
	{"go", nixie.ReasonTransportUnavailable, "no such host|server misbehaving|use of closed network connection|actively refused it"},
	{"node", nixie.ReasonTransportUnavailable, "socket hang up|other side closed|und_err_socket|fetch failed|enotfound|eai_again|" +
		"client network socket disconnected"},
	{"python", nixie.ReasonTransportUnavailable, "connectionrefusederror|connectionreseterror|connectionabortederror|brokenpipeerror|" +
		"remotedisconnected|remote end closed connection|newconnectionerror|nameresolutionerror|serverdisconnectederror|connecterror|" +
		"clientconnectorerror|clientconnectordnserror|remoteprotocolerror|eof occurred in violation of protocol|gaierror"},
	{"celery", nixie.ReasonTransportUnavailable, "kombu.exceptions.operationalerror"},
	{"ruby", nixie.ReasonTransportUnavailable, "failed to open tcp connection|getaddrinfo|redis::cannotconnecterror|resolv::resolverror"},
	{"java", nixie.ReasonTransportUnavailable, "java.net.connectexception|unknownhostexception|noroutetohostexception|" +
		"portunreachableexception|closedchannelexception|nohttpresponseexception|httphostconnectexception|connection reset"},
	{"dotnet", nixie.ReasonTransportUnavailable, "brokerunreachableexception|no such host is known|" +
		"network-related or instance-specific error|none of the specified endpoints were reachable"},
	{"libc", nixie.ReasonTransportUnavailable, "connection refused|connection reset by peer|connection aborted|" +
		"software caused connection abort|broken pipe|no route to host|network is unreachable|network is down|host is down|" +
		"host is unreachable|transport endpoint is not connected|cannot assign requested address|temporary failure in name resolution|" +
		"name or service not known|econnrefused|econnreset|econnaborted|epipe|ehostunreach|ehostdown|enetunreach|enetdown|enotconn|" +
		"eaddrnotavail"},
	{"any", nixie.ReasonTransportUnavailable, "*connectionerror|*connectionexception|*connectionrefused|*connectionreset|" +
		"*connectionclosed|*connectionfailed|*connectfailure|*disconnect|*amqpconnect|*unknownhost|*socketexception|*cannotconnect"},

	{"http", nixie.ReasonAuth, `401 unauthorized|401 "unauthorized"|401 client error|403 forbidden|403 "forbidden"|403 client error|` +
		"status code 401|status code 403|error: 401|error: 403"},
	{"libc", nixie.ReasonAuth, "permission denied|operation not permitted|eacces|eperm"},
	{"dotnet", nixie.ReasonAuth, "unauthorizedaccessexception|security.authentication.authenticationexception"},
	{"java", nixie.ReasonAuth, "java.nio.file.accessdeniedexception|javax.security.auth.login.loginexception|badcredentialsexception"},
	{"any", nixie.ReasonAuth, "*authorization|*authentication|*unauthorized|*accessdenied|*permissiondenied|*badcredentials"},

	{"node", nixie.ReasonSerialization, "in json at position|is not valid json|unexpected end of json input"},
	{"ruby", nixie.ReasonSerialization, "json::parsererror|psych::syntaxerror"},
	{"python", nixie.ReasonSerialization, "jsondecodeerror|unicodedecodeerror|unpicklingerror|etree.elementtree.parseerror"},
	{"celery", nixie.ReasonSerialization, "kombu.exceptions.decodeerror|kombu.exceptions.contentdisallowed"},
	{"rq", nixie.ReasonSerialization, "deserializationerror"},
	{"dramatiq", nixie.ReasonSerialization, "dramatiq.errors.decodeerror"},
	{"java", nixie.ReasonSerialization, "numberformatexception|datetimeparseexception|saxparseexception|mismatchedinputexception|" +
		"unrecognizedpropertyexception|streamcorruptedexception|invalidclassexception|malformedinputexception"},
	{"dotnet", nixie.ReasonSerialization, "system.formatexception|system.xml.xmlexception|was not in a correct format"},
	{"go", nixie.ReasonSerialization, "invalid character * looking for beginning of value|cannot unmarshal|unexpected end of json"},
	{"any", nixie.ReasonSerialization, "*serialization|*conversion|*dataexception|*json|*parseexception|*parseerror|*decodeerror"},

	{"ruby", nixie.ReasonValidation, "activerecord::recordinvalid|activemodel::validationerror"},
	{"any", nixie.ReasonValidation, "*validation"},

	{"dotnet", nixie.ReasonCanceled, "operation was canceled|task was canceled"},
	{"go", nixie.ReasonCanceled, "context canceled"},
}
