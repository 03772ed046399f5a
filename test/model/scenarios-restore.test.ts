/**
 * Plan: as `scenarios.test.ts`, for stores that were restored from a backup: the traces V1 to V4 and V6 of
 * the first search and W1 to W5 of the second, up to the step that repairs.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settingsOf } from './settings.ts'
import { Walk } from './walk.ts'

const A = 0
const B = 1
const FENCED = { fenced: true, honest: false, resources: 1 }
const BACK_UP = 'operator: backs the store up'
const RESTORE = 'operator: restores the backup'

/** a works under 1.1, sealed; the store is then as it was before anything was granted. */
function forgottenGrant(): Walk {
  const walk = new Walk(
    settingsOf({ restores: 1, raises: 2, work: 1 }, { ...FENCED, start: 'empty' }),
  )
  walk.go(BACK_UP, 'a: campaigns (p0)', 'a: owned 1.1 (p0) done', 'a: seals resource 0: raise')
  return walk.go('a: acquired (p0)', 'a: work begins (p0)', RESTORE)
}

test('V1: after a restore two sessions of one position are two writers, and one is refused', () => {
  const walk = forgottenGrant()
  walk.go('b: campaigns (p0)', 'b: owned 1.1 (p0) done', 'b: seals resource 0: refuse')
  assert.equal(walk.holds(B), 'halting 1.1')
  walk.go('b: halted 1.1 (p0) done')
  assert.equal(walk.stands(), 'halted 1.1 b')
  walk.cannot('b: acquired (p0)')
})

test('V2: a grant that compares a value of the old history does not land in the new one', () => {
  const walk = new Walk(settingsOf({ restores: 1, leaves: 1 }, { start: 'empty', honest: false }))
  walk.go(BACK_UP, 'a: campaigns (p0)', 'a: owned 1.1 (p0) done', 'a: acquired (p0)')
  walk.go('a: gives up (p0)', 'a: drained, its map shows-the-dead (p0)', RESTORE)
  walk.go('b: campaigns (p0)', 'b: owned 1.1 (p0) done')
  walk.cannot('a: owned 1.2 (p0) done')
  walk.go('a: owned 1.2 (p0) refused')
  assert.equal(walk.stands(), 'owned 1.1 b')
  assert.equal(walk.holds(A), 'absent')
})

test('V3: a position granted twice is worked under by the first that sealed it', () => {
  const walk = new Walk(settingsOf({ restores: 1, raises: 1 }, { ...FENCED, start: 'empty' }))
  walk.go(BACK_UP, 'a: campaigns (p0)', 'a: owned 1.1 (p0) done', RESTORE)
  walk.go('b: campaigns (p0)', 'b: owned 1.1 (p0) done', 'b: seals resource 0: raise')
  walk.go('b: acquired (p0)', 'a: seals resource 0: refuse')
  assert.equal(walk.holds(A), 'halting 1.1')
  walk.go('a: halted 1.1 (p0) refused')
  assert.equal(walk.holds(A), 'absent')
  assert.equal(walk.stands(), 'owned 1.1 b')
})

test('V4: a token that comes back after it was given up is halted, and granted anew once raised', () => {
  const walk = new Walk(settingsOf({ restores: 1, raises: 2, leaves: 1 }, { honest: false }))
  walk.go(BACK_UP, 'a: gives up (p0)', 'a: drained, its map shows-nobody (p0)')
  walk.go('a: vacant 1.1 (p0) done', RESTORE, 'a: map shows owned 1.1 (p0)')
  assert.equal(walk.holds(A), 'absent')
  walk.go('a: store answers confirm', 'a: halted 1.1 (p0) done')
  walk.go('operator: raises the incarnation to 2', 'a: sees incarnation 2')
  walk.go('a: owned 2.2 (p0) done', 'a: acquired (p0)')
  assert.equal(walk.holds(A), 'serving 2.2')
})

/** While a works under 1.1, p0 is forced to b, which seals 1.2; the store is then as it was before. */
function fencedOff(resources: number): Walk {
  const walk = new Walk(
    settingsOf(
      { restores: 1, raises: 2, work: 1, revokes: 1, forces: 1, drops: 1 },
      { ...FENCED, resources, planner: 'any' },
    ),
  )
  walk.go('a: work begins (p0)', BACK_UP, 'rebalancer: revokes p0, to b')
  walk.go('rebalancer: forces p0 to b')
  walk.go('b: map shows owned 1.2 (p0)', 'b: seals resource 0: raise')
  return walk.go(RESTORE, 'a: writes to resource 0: stale')
}

test('V4: an owner whose fence is ahead of etcd halts, and works again once raised', () => {
  const walk = fencedOff(1)
  assert.equal(walk.holds(A), 'halting 1.1')
  walk.go('a: halted 1.1 (p0) done', 'operator: raises the incarnation to 2')
  walk.go('a: sees incarnation 2', 'a: owned 2.2 (p0) done', 'a: seals resource 0: raise')
  walk.go('a: acquired (p0)')
  assert.equal(walk.holds(A), 'serving 2.2')
})

test('V6: after a raise every resource is sealed before the first read, and old writes are refused', () => {
  const walk = fencedOff(2)
  walk.go('a: halted 1.1 (p0) done', 'operator: raises the incarnation to 2')
  walk.go('a: sees incarnation 2', 'a: owned 2.2 (p0) done', 'a: seals resource 0: raise')
  walk.cannot('a: acquired (p0)')
  walk.go('a: seals resource 1: raise')
  walk.cannot('a: writes to resource 0: accept', 'a: writes to resource 1: accept')
  walk.go('a: acquired (p0)')
})

test('W1: a campaign of the old incarnation does not land after the raise', () => {
  const walk = new Walk(settingsOf({ restores: 1, raises: 2 }, { start: 'empty', honest: false }))
  walk.go(BACK_UP, 'a: campaigns (p0)', 'a: owned 1.1 (p0) done', 'a: acquired (p0)', RESTORE)
  walk.go('a: map shows nothing (p0)', 'a: store answers confirm')
  assert.equal(walk.holds(A), 'absent')
  walk.go('a: campaigns (p0)', 'operator: raises the incarnation to 2')
  walk.cannot('a: owned 1.1 (p0) done')
  walk.go('a: owned 1.1 (p0) refused with its batch', 'a: sees incarnation 2')
  walk.go('a: campaigns (p0)', 'a: owned 2.1 (p0) done')
  assert.equal(walk.holds(A), 'acquiring 2.1')
})

test('W2: a token counts as given up when the request is sent, whatever became of it', () => {
  const walk = new Walk(settingsOf({ raises: 1, lost: 1 }))
  walk.go('operator: raises the incarnation to 2', 'a: sees incarnation 2')
  walk.go('a: drained, its map shows-the-dead (p0)', 'a: owned 2.2 (p0) times out')
  walk.go('a: store answers confirm')
  assert.equal(walk.stands(), 'owned 1.1 a')
  assert.equal(walk.holds(A), 'handing-over 1.1')
  walk.cannot('a: acquired (p0)')
  walk.go('a: owned 2.2 (p0) lands late', 'a: map shows owned 2.2 (p0)', 'a: acquired (p0)')
  assert.equal(walk.holds(A), 'serving 2.2')
})

test('W3: a record that names me at a position that I remember and never held is halted', () => {
  const walk = new Walk(
    settingsOf(
      { restores: 1, raises: 2, leaves: 1, expiries: 1 },
      { start: 'empty', honest: false },
    ),
  )
  walk.go('a: campaigns (p0)', 'b: campaigns (p0)', BACK_UP, 'a: owned 1.1 (p0) done')
  walk.go('a: acquired (p0)', 'a: gives up (p0)', 'a: drained, its map shows-the-dead (p0)')
  walk.go('a: owned 1.2 (p0) done', 'b: map shows owned 1.2 (p0)', 'b: acquired (p0)')
  assert.equal(walk.holds(B), 'serving 1.2')
  // The restored store still takes the campaign that was on its way.
  walk.go(RESTORE, 'b: owned 1.1 (p0) done')
  walk.go('b: store answers confirm')
  assert.equal(walk.holds(B), 'halting 1.1')
  walk.go('b: halted 1.1 (p0) done')
  assert.equal(walk.stands(), 'halted 1.1 b')
})

test('W4: the raise exceeds what a halted record and every resource have seen', () => {
  const walk = new Walk(settingsOf({ restores: 1, raises: 3, work: 1 }, { ...FENCED }))
  walk.go(BACK_UP, 'operator: raises the incarnation to 2', 'a: sees incarnation 2')
  walk.go('a: drained, its map shows-the-dead (p0)', 'a: owned 2.2 (p0) done')
  walk.go('a: seals resource 0: raise', 'a: acquired (p0)', 'a: work begins (p0)', RESTORE)
  walk.cannot('operator: raises the incarnation to 2')
  walk.go('operator: raises the incarnation to 3')
  assert.equal(walk.holds(A), 'serving 2.2')
})

test('W5: a halted partition runs nowhere before the raise, also when its owner is gone', () => {
  const walk = fencedOff(1)
  walk.go('a: halted 1.1 (p0) done', 'store: drops the live session of a')
  walk.go('b: map shows halted 1.1 (p0)', 'b: store answers confirm')
  assert.equal(walk.holds(B), 'absent')
  walk.cannot('b: campaigns (p0)')
})
