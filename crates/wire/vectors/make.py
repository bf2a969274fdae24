"""Makes scapy.txt: RoCEv2 frames built, with their ICRC, by scapy (https://scapy.net), which shares no code with this crate.

    pip install scapy==2.8.0
    python vectors/make.py > vectors/scapy.txt
"""

import scapy
from scapy.contrib.roce import AETH, BTH, cnp
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

ETHER = dict(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
RETH = bytes.fromhex("00007f0001020304 0000beef 00000800".replace(" ", ""))
TEXT = bytes(i * 7 & 0xFF for i in range(1024))


def v4(**more):
    return Ether(**ETHER) / IP(src="10.0.0.1", dst="10.0.0.2", flags="DF", id=0x1C46, tos=0x6A, **more)


def v6(**more):
    return Ether(**ETHER) / IPv6(src="fd00::1", dst="fd00::2", tc=0x6A, fl=0xABCDE, **more)


def roce(ip, sport, bth):
    return ip / UDP(sport=sport, dport=4791, chksum=0) / bth


def bth(opcode, psn, **more):
    return BTH(opcode=opcode, dqpn=0x123456, psn=psn, **more)


FRAMES = {
    "write-only": roce(v4(), 49441, bth(0x0A, 77, ackreq=1) / Raw(RETH + TEXT[:64])),
    "write-first": roce(v4(), 49441, bth(0x06, 0xFFFFFF) / Raw(RETH + TEXT)),
    "write-middle": roce(v4(), 49441, bth(0x07, 0) / Raw(TEXT)),
    "write-last-padded": roce(v4(), 49441, bth(0x08, 1, ackreq=1, padcount=3) / Raw(TEXT[:5] + b"\0\0\0")),
    "write-last-empty": roce(v4(), 49441, bth(0x08, 1)),
    "marked": roce(v4(ttl=3), 65535, bth(0x07, 2, fecn=1, becn=1) / Raw(TEXT[:8])),
    "ack": roce(v4(), 49476, bth(0x11, 76) / AETH(syndrome=0x1F, msn=3)),
    "nak": roce(v4(), 49476, bth(0x11, 77) / AETH(syndrome=0x60, msn=0xFFFFFF)),
    "receiver-not-ready": roce(v4(), 49476, bth(0x11, 77) / AETH(syndrome=0x2C, msn=3)),
    "cnp": roce(v4(), 49476, cnp(0x123456)),
    "v6-write-middle": roce(v6(hlim=9), 49513, bth(0x07, 5) / Raw(TEXT[:256])),
    "v6-nak": roce(v6(), 49513, bth(0x11, 6) / AETH(syndrome=0x60, msn=1)),
    "v6-cnp": roce(v6(), 49513, cnp(0xFFFFFF)),
}

print(f"# RoCEv2 frames without FCS, built by scapy {scapy.__version__}: python vectors/make.py > vectors/scapy.txt")
for name, frame in FRAMES.items():
    print(name, bytes(frame).hex())
