// Writes times of day in the zone of the reader. Without this file they are in that of the server.
// The page names the zone either way.
"use strict";
{
  const two = (n) => String(n).padStart(2, "0");

  // offset returns the distance of a local time from UTC.
  function offset(at) {
    const minutes = Math.abs(at.getTimezoneOffset());
    return (at.getTimezoneOffset() > 0 ? "-" : "+") + two(Math.floor(minutes / 60)) + ":" + two(minutes % 60);
  }

  function zone() {
    const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
    return name === "UTC" ? name : `${name} (UTC${offset(new Date())})`;
  }

  // local writes all times again, each as long as it was.
  function local() {
    for (const time of document.querySelectorAll("time")) {
      const at = new Date(time.dateTime);
      const day = at.getFullYear() + "-" + two(at.getMonth() + 1) + "-" + two(at.getDate());
      const text = day + " " + two(at.getHours()) + ":" + two(at.getMinutes()) + ":" + two(at.getSeconds());
      time.title = text + " " + offset(at);
      if (time.matches(".clock")) time.textContent = text.slice(0, time.textContent.length);
    }
    document.getElementById("zone").textContent = zone();
  }

  local();
  document.addEventListener("loaded", local);
}
