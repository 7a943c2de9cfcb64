//! Nodes that share a store: who is there, who owns what, and how it passes on. The last page of the suite.

use std::sync::Arc;

use crate::cluster::*;
use crate::conformance::samples::*;
use crate::conformance::world::*;
use crate::store::{Later, Store};

/// One store with three or more partitions, as nodes come to it.
pub trait Nodes: Send + Sync {
    /// The handle of one run of a node.
    fn node(&self, name: &str, address: &str) -> Later<'_, Result<Arc<dyn Store>, Failed>>;

    /// Far longer than a case takes, where leases run by a real clock.
    fn lease_ms(&self) -> i64;

    /// Whether leases can be let run out.
    fn has_time(&self) -> bool {
        false
    }

    /// Lets so much of every lease pass.
    fn pass(&self, ms: i64) -> Later<'_, Result<(), Failed>> {
        let _ = ms;
        Box::pin(std::future::ready(Ok(())))
    }
}

struct Member {
    store: Arc<dyn Store>,
}

impl Member {
    async fn join(nodes: &Arc<dyn Nodes>, name: &str) -> Result<Member, Failed> {
        let store = nodes.node(name, &format!("http://{name}:7070")).await?;
        let member = Member { store };
        member.cluster()?.join().await?;
        Ok(member)
    }

    fn cluster(&self) -> Result<&dyn Cluster, Failed> {
        self.store.cluster().ok_or_else(|| Failed("a node's handle knows of no cluster".to_owned()))
    }

    fn id(&self) -> Result<NodeId, Failed> {
        Ok(self.cluster()?.me())
    }

    async fn open(&self, partition: u16) -> Result<World, Failed> {
        World::open_at(self.store.clone(), partition).await
    }

    async fn members(&self) -> Result<Members, Failed> {
        Ok(self.cluster()?.members().await?)
    }

    /// The owner's name of each of the first three partitions; `-` where it is free.
    async fn owners(&self) -> Result<[String; 3], Failed> {
        let members = self.members().await?;
        Ok([1, 2, 3].map(|partition| members.owner(partition).map_or("-".to_owned(), |node| node.name.clone())))
    }
}

fn names(members: &Members) -> Vec<&str> {
    members.nodes.iter().map(|node| &*node.name).collect()
}

fn is_refused(opened: &Result<World, Failed>) -> bool {
    opened.is_err()
}

pub async fn a_node_joins_and_is_listed(nodes: Arc<dyn Nodes>) -> Result<(), Failed> {
    let handle = nodes.node("b", "http://b:7070").await?;
    let Some(cluster) = handle.cluster() else {
        return Err(Failed("a node's handle knows of no cluster".to_owned()));
    };
    same("nobody yet", names(&cluster.members().await?), Vec::<&str>::new())?;
    let b = Member::join(&nodes, "b").await?;
    let a = Member::join(&nodes, "a").await?;
    same("each is another", a.id()? != b.id()?, true)?;
    let members = a.members().await?;
    same("by name", names(&members), vec!["a", "b"])?;
    let Some(me) = members.node(&a.id()?) else { return Err(Failed("it is not in the list".to_owned())) };
    same("where it is", (&*me.name, &*me.address), ("a", "http://a:7070"))?;
    same("its lease", (1..=nodes.lease_ms()).contains(&me.lease_left_ms), true)?;
    same("it joined", me.joined_at <= members.now, true)?;
    let numbers: Vec<u16> = members.partitions.iter().map(|row| row.partition).collect();
    same("all partitions", numbers, a.store.partitions().iter().collect())?;
    same("all are free", members.partitions.iter().all(|row| row.owner.is_none()), true)?;
    same("and asking for it renews nothing", b.cluster()?.renew().await?.nodes.len(), 2)
}

pub async fn a_node_owns_what_it_opened(nodes: Arc<dyn Nodes>) -> Result<(), Failed> {
    let a = Member::join(&nodes, "a").await?;
    let b = Member::join(&nodes, "b").await?;
    let mut world = a.open(2).await?;
    let other = b.open(3).await?;
    world.put([row(timer(1, 1))]).await?;
    same("owners", b.owners().await?, ["-", "a", "b"].map(str::to_owned))?;
    let members = b.members().await?;
    let row_of = |partition| members.partitions.iter().find(|row| row.partition == partition).cloned();
    let want = |world: &World, owner| Ownership {
        partition: world.fence.partition,
        epoch: world.fence.epoch,
        position: world.fence.new_position,
        owner: Some(owner),
    };
    same("how it stands", row_of(2), Some(want(&world, a.id()?)))?;
    same("how it stands", row_of(3), Some(want(&other, b.id()?)))?;
    let again = a.open(2).await?;
    same("its own again", again.fence.epoch > world.fence.epoch, true)?;
    same("still its own", a.owners().await?, ["-", "a", "b"].map(str::to_owned))
}

pub async fn what_a_living_node_owns_is_refused(nodes: Arc<dyn Nodes>) -> Result<(), Failed> {
    let a = Member::join(&nodes, "a").await?;
    let b = Member::join(&nodes, "b").await?;
    let mut world = a.open(1).await?;
    same("another's", is_refused(&b.open(1).await), true)?;
    same("who is not there has no say either", is_refused(&uninvited(&nodes).await?.open(1).await), true)?;
    let members = b.members().await?;
    same("the epoch", members.partitions.first().map(|row| row.epoch), Some(world.fence.epoch))?;
    same("the owner goes on", ending(&world.put([row(timer(1, 1))]).await), "committed")?;
    same("what is free is not", is_refused(&b.open(2).await), false)
}

/// A handle that did not join.
async fn uninvited(nodes: &Arc<dyn Nodes>) -> Result<Member, Failed> {
    Ok(Member { store: nodes.node("c", "http://c:7070").await? })
}

pub async fn a_released_partition_is_free_at_once(nodes: Arc<dyn Nodes>) -> Result<(), Failed> {
    let a = Member::join(&nodes, "a").await?;
    let b = Member::join(&nodes, "b").await?;
    let mut world = a.open(1).await?;
    a.open(2).await?;
    b.cluster()?.release(1).await?;
    same("another cannot give it up", a.owners().await?, ["a", "a", "-"].map(str::to_owned))?;
    world.put([row(timer(1, 1))]).await?;
    a.cluster()?.release(1).await?;
    same("free", b.owners().await?, ["-", "a", "-"].map(str::to_owned))?;
    let mut taken = b.open(1).await?;
    same("a higher epoch", taken.fence.epoch > world.fence.epoch, true)?;
    same("where it was left", (taken.fence.new_position, taken.head), (1, world.head))?;
    same("the old owner", ending(&world.put([row(timer(2, 1))]).await), "fenced")?;
    same("the new one", ending(&taken.put([row(timer(2, 1))]).await), "committed")?;
    same("owners", a.owners().await?, ["b", "a", "-"].map(str::to_owned))
}

pub async fn who_leaves_owns_nothing(nodes: Arc<dyn Nodes>) -> Result<(), Failed> {
    let a = Member::join(&nodes, "a").await?;
    let b = Member::join(&nodes, "b").await?;
    let mut world = a.open(1).await?;
    a.open(2).await?;
    b.open(3).await?;
    a.cluster()?.leave().await?;
    same("who is there", names(&b.members().await?), vec!["b"])?;
    same("what is free", b.owners().await?, ["-", "-", "b"].map(str::to_owned))?;
    b.open(1).await?;
    same("fenced", ending(&world.put([row(timer(1, 1))]).await), "fenced")
}

/// A process that was killed and started again need not wait for its own lease.
pub async fn the_same_name_again_is_another_node(nodes: Arc<dyn Nodes>) -> Result<(), Failed> {
    let before = Member::join(&nodes, "a").await?;
    let b = Member::join(&nodes, "b").await?;
    let mut world = before.open(1).await?;
    before.open(2).await?;
    b.open(3).await?;
    let after = Member::join(&nodes, "a").await?;
    same("another run", before.id()? != after.id()?, true)?;
    let members = b.members().await?;
    same("who is there", names(&members), vec!["a", "b"])?;
    same("the new run", members.node(&after.id()?).is_some(), true)?;
    same("its partitions are free", b.owners().await?, ["-", "-", "b"].map(str::to_owned))?;
    after.open(1).await?;
    b.open(2).await?;
    same("the old run is fenced", ending(&world.put([row(timer(1, 1))]).await), "fenced")?;
    same("owners", b.owners().await?, ["a", "b", "b"].map(str::to_owned))
}

pub async fn a_renewed_lease_lasts(nodes: Arc<dyn Nodes>) -> Result<(), Failed> {
    let a = Member::join(&nodes, "a").await?;
    let b = Member::join(&nodes, "b").await?;
    a.open(1).await?;
    let most_of_it = nodes.lease_ms() / 3 * 2;
    for _ in 0..3 {
        nodes.pass(most_of_it).await?;
        let left = |members: &Members| members.nodes.iter().map(|node| node.lease_left_ms).max();
        same("less is left", left(&b.members().await?) <= Some(nodes.lease_ms() - most_of_it), true)?;
        let members = a.cluster()?.renew().await?;
        same("a fresh one", left(&members) > Some(nodes.lease_ms() / 2), true)?;
        same("both live", b.cluster()?.renew().await?.nodes.len(), 2)?;
    }
    same("and it owns what it owned", is_refused(&b.open(1).await), true)
}

pub async fn a_lease_that_ran_out_frees_its_partitions(nodes: Arc<dyn Nodes>) -> Result<(), Failed> {
    let a = Member::join(&nodes, "a").await?;
    let b = Member::join(&nodes, "b").await?;
    let mut world = a.open(1).await?;
    a.open(2).await?;
    let half = nodes.lease_ms() / 2 + 1;
    nodes.pass(half).await?;
    b.cluster()?.renew().await?;
    nodes.pass(half).await?;
    same("dead before anybody said so", names(&b.members().await?), vec!["b"])?;
    same("free", b.owners().await?, ["-", "-", "-"].map(str::to_owned))?;
    let mut taken = b.open(1).await?;
    same("fenced", ending(&world.put([row(timer(1, 1))]).await), "fenced")?;
    same("the new owner", ending(&taken.put([row(timer(1, 1))]).await), "committed")?;
    same("struck off", names(&b.cluster()?.renew().await?), vec!["b"])?;
    same("owners", b.owners().await?, ["b", "-", "-"].map(str::to_owned))
}

/// It was only slow: what it owned is gone, or at least free.
pub async fn who_was_struck_off_enters_again(nodes: Arc<dyn Nodes>) -> Result<(), Failed> {
    let a = Member::join(&nodes, "a").await?;
    let b = Member::join(&nodes, "b").await?;
    a.open(1).await?;
    let half = nodes.lease_ms() / 2 + 1;
    nodes.pass(half).await?;
    b.cluster()?.renew().await?;
    nodes.pass(half).await?;
    b.cluster()?.renew().await?;
    let members = a.cluster()?.renew().await?;
    same("both", names(&members), vec!["a", "b"])?;
    same("the same run", members.node(&a.id()?).is_some(), true)?;
    same("it owns nothing", members.partitions.iter().all(|row| row.owner.is_none()), true)?;
    a.open(1).await?;
    same("it takes as any other", b.owners().await?, ["a", "-", "-"].map(str::to_owned))
}
