"""What the scripts of the pages say, handed to them in the reader's language.

The scripts read these from one JSON element of the page; `{name}` is filled in there.
"""

from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

SCRIPT_STRINGS: Final[dict[str, str | Promise]] = {
    "ago": _("{duration} ago"),
    "in": _("in {duration}"),
    "days": _("{days} d {hours} h"),
    "hours": _("{hours} h {minutes} min"),
    "minutes": _("{minutes} min"),
    "seconds": _("{seconds} s"),
    "live_connecting": _("Connecting…"),
    "live_updated": _("Live · updated {age}"),
    "live_stale": _("Stale since {duration}"),
    "request_failed": _(
        "The portal did not answer ({status}). Nothing was changed by this page; try again."
    ),
    "copied": _("Copied"),
    "log_waiting": _("No output yet"),
    "log_ended": _("End of the log"),
    "log_cut": _("Earlier lines are in the download"),
    "log_unreachable": _("The log cannot be read now; trying again"),
    "log_paused": _("Paused; {count} new lines"),
    "grid_empty": _("No nodes yet"),
    "grid_no_devices": _("no devices"),
    "grid_nodes": _("{nodes} nodes · {devices} devices"),
    "grid_free": _("free"),
    "grid_held": _("held"),
    "grid_idle": _("held but idle"),
    "grid_blocked": _("not schedulable"),
    "grid_unhealthy": _("unhealthy"),
    "node": _("Node"),
    "device": _("Device"),
    "flavor": _("Flavor"),
    "state": _("State"),
    "utilisation": _("Utilisation"),
    "memory": pgettext_lazy("of a device", "Memory"),
    "power": _("Power"),
    "temperature": _("Temperature"),
    "near_to": _("Near to"),
    "held_by": _("Held by"),
    "another_tenant": _("another tenant"),
    "cpu": _("CPU"),
    "ram": _("RAM"),
    "seen": _("seen {age}"),
    "node_ready": _("ready"),
    "node_cordoned": _("cordoned"),
    "node_draining": _("draining"),
    "node_unknown": _("unknown"),
    "cpu_only": _("CPU only"),
}
