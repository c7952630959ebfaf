import base64, random, sys, time
from collections import Counter
import msgpack
from threadmark.rope import *

from threadmark.compression import shrink
def text(r, n): return base64.b64encode(r.randbytes(n*3//4)).decode()

class Ledger:
    def __init__(s, squeeze): s.segs={}; s.new=s.rows=s.man=s.vals=0; s.squeeze=squeeze; s.t=0; s.tp=0; s.mark=0; s.maxseg=s.maxsl=0; s.sumseg=s.sumsl=0;s.n=0; s.amp=0
    def put(s, data, sources):
        t=time.perf_counter(); w=weave(data, sources); p=pack(w.manifest); s.t+=time.perf_counter()-t
        for k,v in w.fresh.items():
            if k not in s.segs: s.segs[k]=v; s.new+=len(shrink(v)) if s.squeeze else len(v); s.rows+=1
        s.man+=len(p); s.vals+=1
        assert unpack(p)==w.manifest
        assert join(w.manifest, s.segs)==data
        ks=segment_keys(w.manifest); s.sumseg+=len(ks); s.sumsl+=len(w.manifest); s.n+=1
        s.maxseg=max(s.maxseg,len(ks)); s.maxsl=max(s.maxsl,len(w.manifest))
        s.amp=max(s.amp, (sum(len(s.segs[k]) for k in ks)-1024)/max(1,len(data)))
        return Source(data,w.manifest)
    def total(s): return s.new+60*s.rows+s.man+30*s.vals
    def report(s,name,steps,base=0):
        print(f"{name:18s} {'z' if s.squeeze else '-'} {(s.total()-base)/steps:8.0f}/step  new {s.new/steps:7.0f} rows {s.rows/steps:5.2f} manifests {s.man/steps:6.0f} | segs max {s.maxseg} avg {s.sumseg/s.n:.1f} slices max {s.maxsl} avg {s.sumsl/s.n:.1f} amp {s.amp:.2f} | {s.t/s.n*1e6:.0f} us")

def message(r,i,k=600): return {"type":"human" if i%2 else "ai","id":f"{r.getrandbits(64):016x}","content":text(r,k)}
def chat(n,z,nested=False,wrap=False,k=600):
    r=random.Random(1); L=Ledger(z); msgs=[]; cur=None; tp=0
    notes={f"note{i}": text(r,30) for i in range(5)}
    for i in range(n):
        m=message(r,i,k); msgs.append(m)
        w=L.put(msgpack.packb([m] if wrap else m),[cur] if cur else [])
        t=time.perf_counter(); d=msgpack.packb({"messages":msgs,"turn":i,"notes":notes} if nested else msgs); tp+=time.perf_counter()-t
        cur=L.put(d,([cur] if cur else [])+[w])
    L.report(f"{'nested' if nested else 'chat'}{'w' if wrap else ''} {n} k{k}",n); print("   packb us",tp/n*1e6)
def doc(z,n=150):
    r=random.Random(2); L=Ledger(z)
    words=[''.join(r.choices('abcdefghijklmnopqrstuvwxyz',k=r.randint(2,10))) for _ in range(3000)]
    files={f"src/file{i}.py":' '.join(r.choices(words,k=1430))[:10000] for i in range(30)}
    cur=L.put(msgpack.packb(files),[]); base=L.total(); 
    for _ in range(n):
        f=r.choice(list(files)); t=files[f]; p=r.randrange(len(t)-60); k=r.randint(10,60); old=r.choice([0,k,r.randint(10,60)])
        files[f]=t[:p]+' '.join(r.choices(words,k=15))[:k]+t[p+old:]
        cur=L.put(msgpack.packb(files),[cur])
    L.report("doc",n,base)
def fanout(z,n=150):
    r=random.Random(3); L=Ledger(z)
    words=[''.join(r.choices('abcdefghijklmnopqrstuvwxyz',k=r.randint(2,10))) for _ in range(3000)]
    prompt=' '.join(r.choices(words,k=3000))[:20000]; last=[]
    for s in range(n):
        batch=[]
        for p in range(16):
            d=msgpack.packb({"prompt":prompt,"index":p,"step":s,"seed":r.getrandbits(32),"topic":text(r,12)})
            batch.append(L.put(d,(last[:1]+batch)[:20]))
        last=batch
    L.report("fanout (/16)",n*16)
def wide(z,n=150,ch=120):
    r=random.Random(4); L=Ledger(z)
    names=[f"channel_{i:03d}" for i in range(ch)]
    v={c:[1,r.randbytes(70)] for c in names}; seen={c:1 for c in names}; cur=None;base=0
    for s in range(n+1):
        d=msgpack.packb({"v":4,"ts":f"2025-01-01T00:{s//60:02d}:{s%60:02d}.{r.randrange(10**6):06d}+00:00","values":v,"versions_seen":seen})
        cur=L.put(d,[cur] if cur else []); base=base or L.total()
        for c in r.sample(names,2): v[c]=[s+2,r.randbytes(70)]; seen[c]=s+2
    L.report("wide",n,base)
def header(z,n=300,ch=8):
    r=random.Random(5); L=Ledger(z); names=["messages","__start__","branch:to:agent","branch:to:tools","docs","plan","remaining","user"][:ch]
    ver=lambda s: f"{s:032}.{r.random():.16f}"
    v={c:[ver(1),r.randbytes(20)] for c in names}; seen={"__input__":{},"__start__":{"__start__":ver(1)},"agent":{"branch:to:agent":ver(1)},"tools":{"branch:to:tools":ver(1)}}; cur=None;base=0
    for s in range(n):
        d=msgpack.packb({"v":4,"ts":f"2025-01-01T00:{s//60:02d}:{s%60:02d}.{r.randrange(10**6):06d}+00:00","channels":v,"versions_seen":seen,"updated":["messages"]})
        cur=L.put(d,[cur] if cur else [])
        for c in ("messages",)+tuple(r.sample(names[2:4],1)): v[c]=[ver(s+2),r.randbytes(20)]
        k=r.choice(["agent","tools"]); seen[k]={"branch:to:"+k:v["branch:to:"+k][0]}
    L.report(f"header {len(d)}",n)
def small(z,n=300):
    r=random.Random(6); L=Ledger(z); cur=None
    st={f"key{i}":text(r,30) for i in range(15)}
    for s in range(n):
        st[f"key{r.randrange(15)}"]=text(r,30); st["n"]=s
        d=msgpack.packb(st); cur=L.put(d,[cur] if cur else [])
    L.report(f"small {len(d)}",n)
def window(z,n=300):
    r=random.Random(7); L=Ledger(z); cur=None; msgs=[]
    for s in range(n):
        msgs.append(message(r,s,r.choice([100,400,1200]))); w=L.put(msgpack.packb(msgs[-1]),[cur] if cur else [])
        msgs=msgs[-50:]
        d=msgpack.packb(msgs); cur=L.put(d,([cur] if cur else [])+[w])
    L.report(f"window {len(d)}",n)
def mixed(z,n=400):
    r=random.Random(8); L=Ledger(z); cur=None; msgs=[]
    for s in range(n):
        msgs.append(message(r,s,int(r.lognormvariate(6,1.2)))); w=L.put(msgpack.packb([msgs[-1]]),[cur] if cur else [])
        d=msgpack.packb(msgs); cur=L.put(d,([cur] if cur else [])+[w])
    L.report(f"mixed {len(d)//n}",n)
if __name__=="__main__":
    for z in (False,True):
        chat(500,z); chat(500,z,wrap=True); chat(500,z,True); doc(z); fanout(z); wide(z); header(z); small(z); window(z); mixed(z)
    if len(sys.argv)>1:
        for n in (100,1000,3000): chat(n,True)
